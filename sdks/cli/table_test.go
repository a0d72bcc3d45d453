package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"holdfast.dev/sdks/scenario/proxy"
)

// spaces returns text with single spaces.
func spaces(text string) string { return regexp.MustCompile(` +`).ReplaceAllString(text, " ") }

// tour creates a service, a unit with two hours of opening on Saturdays, and a package.
func (c tool) tour(name string) (unit, pack string) {
	c.t.Helper()
	service := c.ok("services", "create", "--name", name, "--duration-minutes", "120", "--jq", ".id")
	unit = c.ok("units", "create", "--name", name, "--service-ids", service, "--opening-hours", `{"sat":[["09:00","13:00"]]}`, "--jq", ".id")
	pack = c.ok("packages", "create", "--name", name, "--service-id", service, "--base-price.amount", "8000", "--base-price.currency", "USD", "--jq", ".id")
	return unit, pack
}

// TestTableColumns checks that tables show customers, units, local times and totals, with one request for all customers and one for all units.
func TestTableColumns(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	name := "Table " + unique()
	unit, pack := c.tour(name)
	customer := c.ok("customers", "create", "--first-name", name, "--email", "table@example.com", "--jq", ".id")
	for _, start := range []string{"09:00", "11:00"} {
		c.ok("bookings", "create", "--customer-id", customer, "--unit-id", unit, "--package-id", pack, "--event-date", "2031-07-05", "--event-start-time", start)
	}
	list := []string{"bookings", "list", "--customer-id", customer, "-o", "table"}
	p, err := proxy.Start(shared.BaseURL, []string{proxy.Pass, proxy.Pass, proxy.Pass})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got := spaces(c.with("HOLDFAST_BASE_URL=" + p.URL).ok(list...))
	for _, want := range []string{"ID STATUS CUSTOMER STARTS ENDS UNIT TOTAL_AMOUNT AMOUNT_DUE NUMBER PAYMENT_STATUS\n", " pending " + name + " 2031-07-05 09:00 11:00 " + name + " 80.00 USD 80.00 USD B-"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if requests := p.Requests(); len(requests) != 3 { // /me, /bookings and /units
		t.Errorf("%+v", requests)
	}
	if got := spaces(c.ok("bookings", "list", "--customer-id", customer, "--columns", "customer.email,unit.name,starts,package_snapshot.name", "--limit", "1")); !strings.HasSuffix(got, "\ntable@example.com "+name+" 2031-07-05 11:00 "+name) {
		t.Errorf("%s", got)
	}
	line := `{"description":"Tour","quantity":1,"unit_amount":{"amount":100,"currency":"USD"}}`
	c.ok("quotes", "create", "--customer-id", customer, "--unit-id", unit, "--event-date", "2031-07-06", "--line-items", line)
	c.ok("invoices", "create", "--customer-id", customer, "--line-items", line)
	for resource, want := range map[string]string{"quotes": " draft " + name + " 2031-07-06 " + name + " 1.00 USD ", "invoices": " draft " + name + " 1.00 USD 1.00 USD "} {
		if got := spaces(c.ok(resource, "list", "--customer-id", customer, "-o", "table")); !strings.Contains(got, want) {
			t.Errorf("%s: %s", resource, got)
		}
	}
	night := c.ok("bookings", "create", "--customer-id", customer, "--starts-at", "2031-08-01T14:00:00Z", "--ends-at", "2031-08-03T14:00:00Z", "--jq", ".event_local_end_date")
	if got := c.ok(append(list, "--all")...); !strings.Contains(got, " "+night+" ") {
		t.Errorf("no end date %s: %s", night, got)
	}
}

// TestTableScopes checks that a table leaves out names that the credential must not read, unless the user asks for them.
func TestTableScopes(t *testing.T) {
	t.Parallel()
	c := bare(t)
	c.login("test", "--scopes", "read:bookings")
	if got := spaces(c.ok("bookings", "list", "-o", "table", "--limit", "1")); !strings.HasPrefix(got, "ID STATUS STARTS ENDS TOTAL_AMOUNT ") {
		t.Errorf("%s", got)
	}
	c.fails(4, []string{"bookings", "list", "--columns", "customer"}, "403 insufficient_scope", "read:customers")
}

// TestSlots checks that the table of availability has a row per slot, in the tenant's time.
func TestSlots(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	unit, pack := c.tour("Slots " + unique())
	c.ok("bookings", "create", "--unit-id", unit, "--package-id", pack, "--event-date", "2031-07-05", "--event-start-time", "09:00")
	got := spaces(c.ok("availability", "list", "--unit-id", unit, "--from", "2031-07-04", "--to", "2031-07-05", "-o", "table"))
	if !regexp.MustCompile(`^DATE START END UNIT STATUS SEATS PRICE_FROM UNIT_ID\n2031-07-04 closed( 80.00 USD)?\n2031-07-05 09:00 11:00 Slots \w+ held 80.00 USD ` + unit + `\n(?s:.*)2031-07-05 11:00 13:00 Slots \w+ available 80.00 USD ` + unit + `$`).MatchString(got) {
		t.Errorf("%s", got)
	}
	c.fails(2, []string{"availability", "list", "--from", "2031-07-05", "--to", "2031-07-05", "--columns", "starts"}, "did you mean start")
}

// TestEncodings checks bodies and keys in the encodings that editors and shells of Windows write, and both names of standard input.
func TestEncodings(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	text := `{"first_name":"Zoë 🛶","email":"zoe@example.com"}`
	for name, file := range map[string]string{
		"UTF-8": "\uFEFF" + text, "UTF-16LE": wide("\uFEFF"+text, false), "UTF-16BE": wide("\uFEFF"+text, true), "UTF-16LE without a mark": wide(text, false),
	} {
		path := filepath.Join(t.TempDir(), "body.json")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.ok("customers", "create", "-d", "@"+path, "--jq", ".first_name"); got != "Zoë 🛶" {
			t.Errorf("%s: %q", name, got)
		}
		for _, data := range []string{"-", "@-"} {
			if r := c.run(file, "customers", "create", "-d", data, "--jq", ".first_name"); r.out != "Zoë 🛶\n" {
				t.Errorf("%s from %s: %+v", name, data, r)
			}
		}
		key := map[string]string{"UTF-8": "\uFEFF" + shared.Key + "\r\n", "UTF-16LE": wide("\uFEFF"+shared.Key+"\r\n", false), "UTF-16BE": wide("\uFEFF"+shared.Key+"\r\n", true)}[name]
		if r := bare(t).run(key, "login", "--api-key", "--base-url", shared.BaseURL); key != "" && r.code != 0 {
			t.Errorf("a key in %s: %+v", name, r)
		}
	}
	for name, file := range map[string]string{"Latin-1": "{\"first_name\":\"Zo\xeb\"}", "half a character": wide("\uFEFF{}", false) + "x"} {
		if r := c.run(file, "customers", "create", "-d", "@-"); r.code != 2 || !strings.Contains(r.err, "--data: the text is neither UTF-8 nor UTF-16") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// wide returns text in UTF-16.
func wide(text string, bigEndian bool) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		first, second := byte(unit), byte(unit>>8)
		if bigEndian {
			first, second = second, first
		}
		out.WriteByte(first)
		out.WriteByte(second)
	}
	return out.String()
}
