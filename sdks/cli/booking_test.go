package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBookings creates, reads, lists, changes and cancels a booking.
func TestBookings(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	service := c.ok("services", "create", "--name", "Kayak tour", "--duration-minutes", "120", "--jq", ".id")
	unit := c.ok("units", "create", "--name", "Kayak 1", "--service-ids", service, "--opening-hours", `{"sat":[["09:00","17:00"]]}`, "--jq", ".id")
	pack := c.ok("packages", "create", "--name", "Two hours", "--service-id", service, "--base-price.amount", "8000", "--base-price.currency", "USD", "--jq", ".id")
	create := []string{"bookings", "create", "--unit-id", unit, "--package-id", pack, "--event-date", "2031-07-05", "--event-start-time", "09:00", "--metadata", "order=17", "--idempotency-key", "order-" + unit}
	booking := object(t, c.ok(create...))
	id, _ := booking["id"].(string)
	if booking["status"] != "pending" || fmt.Sprint(booking["total_amount"]) != "map[amount:8000 currency:USD]" || fmt.Sprint(booking["metadata"]) != "map[order:17]" {
		t.Errorf("%v", booking)
	}
	if again := object(t, c.ok(create...)); again["id"] != id {
		t.Errorf("the same key made %v and %v", id, again["id"])
	}
	if got := c.ok("bookings", "list", "--unit_id", unit, "--status", "pending", "--status", "confirmed", "--metadata", "order=17", "--jq", ".data[].id"); got != id {
		t.Errorf("listed: %s", got)
	}
	table := c.ok("bookings", "get", id, "-o", "table")
	if !strings.Contains(table, "total_amount") || !strings.Contains(table, "80.00 USD") || !strings.Contains(table, "package_snapshot.name") {
		t.Errorf("%s", table)
	}
	c.fails(6, append(slices.Clone(create[:len(create)-2]), "--metadata", "order=18"), "409 slot_unavailable", "Request ID: req_")
	c.fails(6, []string{"bookings", "update", id, "--notes", "x", "--if-match", "99"}, "version_mismatch")
	updated := object(t, c.ok("bookings", "update", id, "-d", `{"notes":"from data","guest_count":2}`, "--notes", "from a flag", "--if-match", "1"))
	if updated["notes"] != "from a flag" || fmt.Sprint(updated["guest_count"]) != "2" {
		t.Errorf("%v", updated)
	}
	if cleared := object(t, c.ok("bookings", "update", id, "--clear", "notes,guest-count")); cleared["notes"] != nil || cleared["guest_count"] != nil {
		t.Errorf("%v", cleared)
	}
	file := filepath.Join(t.TempDir(), "cancel.json")
	if err := os.WriteFile(file, []byte(`{"reason":"Rain"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if cancelled := object(t, c.ok("bookings", "cancel", id, "-d", "@"+file)); cancelled["status"] != "cancelled" {
		t.Errorf("%v", cancelled)
	}
	r := c.run(`{"event_date":"2031-07-06"}`, "bookings", "create", "-d", "-")
	if r.code != 0 {
		t.Errorf("from standard input: %+v", r)
	}
}

// TestErrors checks the exit codes, and that an error names the flag.
func TestErrors(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	c.fails(3, []string{"bookings", "create", "--event-date", "soon"}, "--event-date: ", "422 invalid_request", "Request ID: req_")
	c.fails(3, []string{"leads", "create", "--email", "x", "--first-name", ""}, "422", "\n  --email: ", "\n  --first-name: ")
	c.fails(5, []string{"bookings", "get", "bk_nope"}, "404 booking_not_found")
	c.fails(2, []string{"bookings", "get"}, "give the ID: holdfast bookings get ID", "Usage: holdfast bookings get ID")
	c.fails(2, []string{"bookings", "get", "bk_1", "bk_2"}, `the argument "bk_2" is one too many: holdfast bookings get ID`)
	c.fails(2, []string{"webhook-endpoints", "retry-delivery"}, "give the ID and the DELIVERY-ID: ")
	c.fails(2, []string{"trigger"}, "give the TYPE: holdfast trigger TYPE")
	c.fails(2, []string{"trigger", "bookings.created"}, "did you mean booking.created?")
	c.fails(2, []string{"trigger", "nothing"}, "the types are booking.created, ")
	c.fails(2, []string{"listen", "--events", "invoice.payed"}, "did you mean invoice.paid?")
	c.fails(3, []string{"webhook-endpoints", "create", "--url", "https://example.com", "--event-types", "booking.crated"}, "--event-types.0: ", "Did you mean booking.created?")
	c.fails(2, []string{"bookings", "list", "--limt", "5"}, "unknown flag --limt: did you mean --limit?")
	c.fails(2, []string{"bookings", "list", "--unit-idd", "5"}, "did you mean --unit-id?")
	c.fails(2, []string{"bookings", "list", "--profil", "5"}, "did you mean --profile?")
	c.fails(2, []string{"bookings", "list", "--columns", "id,numbr"}, `--columns: there is no column "numbr": did you mean number?`, "The columns are amount_credited, amount_due, ", ", unit, starts, ends.")
	c.fails(2, []string{"bookings", "list", "--columns", "customer.nam"}, `there is no column "customer.nam"`)
	c.fails(2, []string{"bookings", "list", "--columns", "id", "-o", "json"}, "--columns chooses the columns of a table")
	c.fails(2, []string{"bookings", "get", ""}, "ID is empty")
	c.fails(2, []string{"bookings", "creat"}, `unknown command "creat"`, "did you mean create")
	c.fails(2, []string{"boking"}, "did you mean bookings")
	c.fails(2, []string{"bookings", "list", "--limit", "many"}, "--limit", "it must be a whole number")
	c.fails(2, []string{"bookings", "list", "-o", "xml"}, "table, json, yaml, csv")
	c.fails(2, []string{"units", "list", "-o", "csv"}, "--output must be table, json, yaml")
	c.fails(2, []string{"bookings", "list", "--jq", ".data["}, "--jq: ")
	c.fails(2, []string{"bookings", "list", "--jq", ".", "-o", "yaml"}, "--jq filters JSON")
	c.fails(2, []string{"bookings", "create", "-d", "[]"}, "--data: it must be one JSON object")
	c.fails(2, []string{"bookings", "create", "-d", "@/nowhere"}, "--data: ", "no such file")
	c.fails(2, []string{"bookings", "create", "--metadata", "x"}, "it must be key=value")
	c.fails(2, []string{"holiday-rules", "create", "--applies-to", "all", "--applies-to.service-ids", "srv_1"}, "--applies-to.service-ids: applies_to has another value already")
	c.fails(2, []string{"--profile", "none", "bookings", "list"}, `there is no profile "none"`)
	bare(t).fails(4, []string{"bookings", "list"}, "holdfast login")
	withKey(t, "svc_test_wrong").fails(4, []string{"me", "get"}, "401 invalid_credential")
	c.with("HOLDFAST_BASE_URL=http://127.0.0.1:1").fails(8, []string{"me", "get"}, "no response after 3 attempts")
	c.with("HOLDFAST_BASE_URL=http://example.com").fails(1, []string{"me", "get"}, "must be https, or http on this machine")
}

// TestLists checks all formats of a list of several pages.
func TestLists(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	name := unique()
	var want []string
	for i := range 5 {
		want = append(want, c.ok("customers", "create", "--first-name", fmt.Sprint("List ", i), "--email", "list@example.com", "--metadata", "run="+name, "--jq", ".id"))
	}
	slices.Reverse(want) // newest first
	list := []string{"customers", "list", "--metadata", "run=" + name, "--limit", "2"}
	if got := strings.Fields(c.ok(append(list, "--all", "--jq", ".data[].id")...)); !slices.Equal(got, want) {
		t.Errorf("--jq with --all: %q, want %q", got, want)
	}
	document := object(t, c.ok(append(list, "--all")...))
	if rows, ok := document["data"].([]any); !ok || len(rows) != 5 || document["has_more"] != false || document["next_cursor"] != nil {
		t.Errorf("json with --all: %v", document)
	}
	if empty := object(t, c.ok("customers", "list", "--metadata", "run=none", "--all")); fmt.Sprint(empty["data"]) != "[]" {
		t.Errorf("an empty list: %v", empty)
	}
	yaml := c.ok(append(list, "--all", "-o", "yaml")...)
	if strings.Count(yaml, "\n- id: cu_") != 5 || !strings.HasPrefix(yaml, "data:\n") || !strings.HasSuffix(yaml, "has_more: false\nnext_cursor: null") {
		t.Errorf("yaml: %s", yaml)
	}
	rows, err := csv.NewReader(strings.NewReader(c.ok("customers", "list", "--metadata", "run="+name, "-o", "csv"))).ReadAll()
	if err != nil || len(rows) != 6 || rows[0][0] != "id" || rows[1][0] != want[0] {
		t.Errorf("csv: %v %v", rows, err)
	}
	r := c.run("", append(list, "-o", "table", "--columns", "id,name,metadata.run")...)
	if got := regexp.MustCompile(` +`).ReplaceAllString(r.out, " "); got != "ID NAME METADATA.RUN\n"+want[0]+" List 4 "+name+"\n"+want[1]+" List 3 "+name+"\n" || !strings.Contains(r.err, "There are more rows: add --all, or --cursor ") {
		t.Errorf("table: %s%s", r.out, r.err)
	}
	if lines := strings.Split(c.ok(append(list, "--all", "-o", "table")...), "\n"); len(lines) != 6 || strings.Contains(strings.Join(lines[1:], ""), "NAME") {
		t.Errorf("table with --all: %q", lines)
	}
}

// TestDryRun checks that --dry-run sends nothing, shows no secret, and prints a command with the same effect.
func TestDryRun(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	email := unique() + "@example.com"
	create := []string{"customers", "create", "--first-name", `O'Brien "$HOME" \ <&>`, "--email", email, "--metadata", "a b=c'd"}
	text := c.ok(append(create, "--dry-run")...)
	if strings.Contains(text, shared.Key) || !strings.Contains(text, `"Authorization: Bearer $HOLDFAST_API_KEY"`) {
		t.Fatalf("%s", text)
	}
	if got := c.ok("customers", "list", "--email", email, "--jq", ".data | length"); got != "0" {
		t.Fatalf("the dry run created %s customers", got)
	}
	first, second := object(t, c.shell(text)), object(t, c.shell(text))
	if first["id"] != second["id"] || first["first_name"] != `O'Brien "$HOME" \ <&>` || fmt.Sprint(first["metadata"]) != "map[a b:c'd]" {
		t.Errorf("%v, then %v", first, second)
	}
	for _, args := range [][]string{
		{"customers", "list", "--email", email},
		{"customers", "get", fmt.Sprint(first["id"])},
		{"customers", "list", "--email", email, "-o", "csv"},
	} {
		if got, want := c.shell(c.ok(append(args, "--dry-run")...)), c.ok(args...); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q: curl returns %s\nwant %s", args, got, want)
		}
	}
	c.shell(c.ok("customers", "delete", fmt.Sprint(first["id"]), "--if-match", "1", "--dry-run"))
	c.fails(5, []string{"customers", "get", fmt.Sprint(first["id"])})
}

// shell runs a command of --dry-run.
func (c tool) shell(text string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "bash", "-c", text)
	cmd.Env = c.env
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s: %v %s", text, err, out)
	}
	return string(out)
}

// TestLiveMode checks that a write of live data needs a confirmation, and a read does not.
func TestLiveMode(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Env["DEMO_LIVE_KEY"])
	before := c.ok("customers", "list", "--all", "--jq", ".data | length")
	create := []string{"customers", "create", "--first-name", "Live", "--email", "live@example.com"}
	c.fails(9, create, "live data", "pass --yes")
	if after := c.ok("customers", "list", "--all", "--jq", ".data | length"); after != before {
		t.Errorf("%s customers, then %s", before, after)
	}
	c.ok(append(create, "--dry-run")...)
	if got := c.ok(append(create, "--yes", "--jq", ".mode")...); got != "live" {
		t.Errorf("%s", got)
	}
	c.fails(1, []string{"trigger", "customer.created"}, "this command is for test mode")
	c.fails(1, []string{"listen"}, "this command is for test mode")
}

// TestOpen checks the address of the console's page of an ID.
func TestOpen(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	for id, page := range map[string]string{"": "", "bk_1": "/bookings/bk_1", "pi_1": "/payments/pi_1", "we_1": "/endpoints/we_1", "req_1": "/requests/req_1"} {
		if got := c.ok(strings.Fields("open " + id)...); got != shared.Env["AUTH_URL"]+"/admin/demo/test"+page {
			t.Errorf("%s: %s", id, got)
		}
	}
	c.fails(2, []string{"open", "x_1"}, `the console has no page for "x_1"`)
}

// TestDocuments checks that documents are written to a file or to a pipe.
func TestDocuments(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	customer := c.ok("customers", "create", "--first-name", "Paper", "--email", "paper@example.com", "--jq", ".id")
	invoice := c.ok("invoices", "create", "--customer-id", customer, "--line-items", `{"description":"Tour","quantity":1,"unit_amount":{"amount":100,"currency":"USD"}}`,
		"--line-items", `{"description":"Lunch","quantity":2,"unit_amount":{"amount":50,"currency":"USD"}}`, "--jq", ".id")
	if got := c.ok("invoices", "get", invoice, "--jq", ".line_items | length"); got != "2" {
		t.Errorf("%s lines", got)
	}
	c.ok("invoices", "open", invoice)
	if got := c.ok("invoices", "get-pdf", invoice); !strings.HasPrefix(got, "%PDF-") {
		t.Errorf("standard output: %.20q", got)
	}
	file := filepath.Join(t.TempDir(), "invoice.pdf")
	if r := c.run("", "invoices", "get-pdf", invoice, "--file", file); r.code != 0 || r.out != "" || !strings.Contains(r.err, "Written to "+file) {
		t.Errorf("%+v", r)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "%PDF-") {
		t.Errorf("%v %.20q", err, text)
	}
	feed := object(t, c.ok("calendar-feeds", "create", "--name", "All"))
	token := regexp.MustCompile(`/calendar/(.+)\.ics$`).FindStringSubmatch(fmt.Sprint(feed["url"]))
	if got := c.ok("calendar-feeds", "get-calendar", token[1]); !strings.HasPrefix(got, "BEGIN:VCALENDAR") {
		t.Errorf("%s", got)
	}
}
