package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lists are the lists of the contract, except those of one object.
var lists = []string{
	"bookings", "calendar-feeds", "closures", "credit-notes", "customers", "events", "holiday-rules", "invoices", "leads", "packages", "payment-intents",
	"quotes", "refunds", "request-logs", "services", "units", "webhook-endpoints",
}

// ids returns the IDs of all rows of a list.
func (c *client) ids(t *testing.T, list string) (ids []string) {
	t.Helper()
	for path := "/" + list + "?limit=50"; ; {
		var page struct {
			Data       []struct{ ID string }
			NextCursor string `json:"next_cursor"`
		}
		c.insist(t, http.MethodGet, path, "", "", http.StatusOK).decode(t, &page)
		for _, row := range page.Data {
			ids = append(ids, row.ID)
		}
		if page.NextCursor == "" {
			return ids
		}
		path = "/" + list + "?limit=50&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// sell adds a row to each list that fill leaves empty.
func (m merchant) sell(t *testing.T) {
	t.Helper()
	created, booking := deposit(t, m.client)
	m.confirm(t, created, "pm_card_visa")
	await(t, "the booking is paid", func() bool { return read[chainBooking](t, m.client, "/bookings/"+booking).Paid.Amount > 0 })
	m.insist(t, http.MethodPost, "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":100,"reason":"duplicate"}`, created.ID), unique("refund"), http.StatusCreated)
	service := m.insist(t, http.MethodPost, "/services", `{"name":"Tour","duration_minutes":60}`, unique("service"), http.StatusCreated).id(t)
	for path, body := range map[string]string{
		"/packages":      fmt.Sprintf(`{"name":"Hour","service_id":%q,"base_price":{"amount":100,"currency":"USD"},"deposit_type":"none"}`, service),
		"/holiday-rules": `{"name":"Summer","date_from":"2030-07-01","date_to":"2030-08-31","multiplier_bps":12500}`,
		"/closures":      `{"name":"Winter","starts_at":"2030-01-01T00:00:00Z","ends_at":"2030-01-05T00:00:00Z"}`,
	} {
		m.insist(t, http.MethodPost, path, body, unique("row"), http.StatusCreated)
	}
	customer := m.insist(t, http.MethodPost, "/customers", newCustomer().body, unique("customer"), http.StatusCreated).id(t)
	invoice := m.insist(t, http.MethodPost, "/invoices",
		fmt.Sprintf(`{"customer_id":%q,"line_items":[{"description":"Bag","quantity":1,"unit_amount":{"amount":1000,"currency":"USD"}}]}`, customer),
		unique("invoice"), http.StatusCreated).id(t)
	m.insist(t, http.MethodPost, "/invoices/"+invoice+"/open", "", unique("open"), http.StatusOK)
	m.insist(t, http.MethodPost, "/invoices/"+invoice+"/credit-notes", `{"amount":{"amount":100,"currency":"USD"},"reason":"The bag was damaged."}`, unique("note"), http.StatusCreated)
	for range 120 { // more than a page
		m.insist(t, http.MethodPost, "/customers", newCustomer().body, unique("customer"), http.StatusCreated)
	}
}

// TestExportOfAClosingTenant runs the commands of docs/tenants.md as they are written for a tenant that is closing. The files contain each
// object of each list once.
func TestExportOfAClosingTenant(t *testing.T) {
	onMachine(t)
	m := newMerchant(t, "USD")
	for _, list := range lists {
		m.ids(t, list) // waits until processes that an earlier test killed run again
	}
	m.receive(t, `["*"]`, nil)
	m.fill(t)
	m.sell(t)
	await(t, "requests are logged", func() bool { return len(m.list(t, "/request-logs?method=POST")) > 0 })
	shared.identity(t, nil, "tenant", "close", m.tenant, "--reason", "The contract has ended", "--json")
	before := map[string][]string{}
	for _, list := range lists {
		before[list] = m.ids(t, list)
	}
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eu\n"+commandsOf(t, "tenants.md", "### How to export")[0])
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(shared.root, "bin")+":"+os.Getenv("PATH"), "HOLDFAST_BASE_URL="+m.base, "HOLDFAST_API_KEY="+m.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || len(files) != len(lists) {
		t.Fatalf("%d files of %d lists, %v", len(files), len(lists), err)
	}
	for _, file := range files {
		list := strings.TrimSuffix(filepath.Base(file), ".ndjson")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			var row struct{ ID string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatalf("%s: %v in %s", list, err, line)
			}
			got = append(got, row.ID)
		}
		after := m.ids(t, list) // events and requests can arrive during the export
		for _, id := range before[list] {
			if !slices.Contains(got, id) {
				t.Errorf("%s lacks %s", list, id)
			}
		}
		for _, id := range got {
			if !slices.Contains(after, id) {
				t.Errorf("%s has %s, which is not in the list", list, id)
			}
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(got)))); n != len(got) || n == 0 {
			t.Errorf("%s: %d rows, %d different", list, len(got), n)
		}
	}
}
