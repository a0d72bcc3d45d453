package page

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
)

var update = flag.Bool("update", false, "rewrite the CSV examples of the contract, proto/examples/*.csv; then make gen")

func TestColumnsFollowTheContract(t *testing.T) {
	t.Parallel()
	c := load(t)
	names := newTable(c.Operation("listBookings").CSV, nil, time.UTC).names
	for _, want := range []string{
		"total_amount.amount", "total_amount.currency", "metadata", "invoice_ids", "cancellation.policy.hold_ttl_minutes",
		"package_snapshot.base_price.amount", "package_snapshot.holiday.name",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("listBookings has no column %s: %v", want, names)
		}
	}
	if slices.Contains(names, "customer.email") || names[0] != "id" || names[1] != "object" || slices.Contains(names, "total_amount") {
		t.Errorf("columns %v", names)
	}
	expanded := newTable(c.Operation("listBookings").CSV, []string{"customer"}, time.UTC).names
	if !slices.Contains(expanded, "customer.email") || len(expanded) != len(names)+23 {
		t.Errorf("expanded columns %v", expanded)
	}
	for _, id := range []string{"listCustomers", "listLeads", "listQuotes", "listInvoices"} {
		if c.Operation(id).CSV == nil {
			t.Errorf("%s has no CSV", id)
		}
	}
	if c.Operation("listUnits").CSV != nil {
		t.Error("listUnits has CSV")
	}
}

func load(t *testing.T) *contract.Contract {
	t.Helper()
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A cell contains the value in the body, except for a text that a spreadsheet would interpret as a formula.
func TestCells(t *testing.T) {
	t.Parallel()
	tab := newTable([]contract.Column{{Name: "v"}, {Name: "w"}}, nil, time.UTC)
	for value, want := range map[string]string{
		`null`: ``, `""`: ``, `true`: `true`, `false`: `false`, `0`: `0`, `-5`: `-5`, `-0.5`: `-0.5`,
		`"=1+1"`: `'=1+1`, `"+1 555"`: `'+1 555`, `"-5"`: `'-5`, `"@SUM(A1)"`: `'@SUM(A1)`, `"\tx"`: "'\tx", `"\rx"`: "\"'\rx\"",
		`"'=1"`: `'=1`, `"a=1"`: `a=1`, `" =1"`: `" =1"`, `"\n=1"`: "\"'\n=1\"",
		`"＝1+1"`: `'＝1+1`, `"＋1"`: `'＋1`, `"－1"`: `'－1`, `"＠SUM(A1)"`: `'＠SUM(A1)`, `"a＝1"`: `a＝1`, `"\uff1d1"`: `'＝1`, `"\ufffd=1"`: "\ufffd=1",
		`"a,b"`: `"a,b"`, `"say \"x\""`: `"say ""x"""`, `"a\nb"`: "\"a\nb\"", `"a\r\nb\rc"`: "\"a\r\nb\rc\"", `"é😀"`: `é😀`, `"\u00e9"`: `é`,
		`["a","b"]`: `"[""a"",""b""]"`, `{"k":"=1"}`: `"{""k"":""=1""}"`, `{}`: `{}`, `[]`: `[]`,
	} {
		out, err := tab.appendRow(nil, []byte(`{"v":`+value+`}`))
		if err != nil || string(out) != want+",\r\n" {
			t.Errorf("%s: %q, %v, want %q", value, out, err, want)
		}
	}
}

func TestNestedObjectsAreFlattened(t *testing.T) {
	t.Parallel()
	tab := newTable([]contract.Column{
		{Name: "id"},
		{Name: "price", Properties: []contract.Column{{Name: "amount"}, {Name: "currency"}}},
		{Name: "deep", Properties: []contract.Column{{Name: "price", Properties: []contract.Column{{Name: "amount"}}}}},
		{Name: "customer", Expand: true, Properties: []contract.Column{{Name: "name"}}},
	}, []string{"customer"}, time.UTC)
	if got := string(tab.appendHeader(nil)); got != "id,price.amount,price.currency,deep.price.amount,customer.name\r\n" {
		t.Errorf("header %q", got)
	}
	for body, want := range map[string]string{
		`{"customer":{"name":"Ann","other":[1,{"name":2}]},"id":"a","deep":{"price":{"amount":7}},"price":{"currency":"EUR","amount":-1}}`: "a,-1,EUR,7,Ann\r\n",
		`{"id":"a","price":null,"deep":{"price":null},"customer":null,"unknown":{"id":"b"}}`:                                               "a,,,,\r\n",
		`{}`: ",,,,\r\n",
	} {
		if got, err := tab.appendRow(nil, []byte(body)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
	if _, err := tab.appendRow(nil, []byte(`{"id":`)); err == nil {
		t.Error("half a body was taken")
	}
}

// newYork returns the time zone of the operator in the contract's examples.
func newYork(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// Derived columns have the decimals of the currency, and times in the time zone of the row, or else in that of the operator. They follow
// the columns of the properties, also with expanded resources, and never begin with an apostrophe.
func TestDerivedColumns(t *testing.T) {
	t.Parallel()
	columns := []contract.Column{
		{Name: "price", Properties: []contract.Column{{Name: "amount"}, {Name: "currency"}}},
		{Name: "at"},
		{Name: "customer", Expand: true, Properties: []contract.Column{{Name: "name"}}},
		{Name: "price_decimal", Of: "price", Form: contract.Decimal},
		{Name: "at_local", Of: "at", Form: contract.Local},
	}
	for body, want := range map[string]string{
		`{"price":{"amount":123456,"currency":"USD"},"at":"2027-07-03T02:00:00Z"}`:    "123456,USD,2027-07-03T02:00:00Z,1234.56,2027-07-02 22:00:00",
		`{"price":{"amount":-5,"currency":"EUR"},"at":"2027-01-03T02:00:00.999999Z"}`: "-5,EUR,2027-01-03T02:00:00.999999Z,-0.05,2027-01-02 21:00:00",
		`{"at":null,"price":{"currency":"JPY","amount":500}}`:                         "500,JPY,,500,",
		`{"price":{"amount":1500,"currency":"KWD"}}`:                                  "1500,KWD,,1.500,",
		`{"price":null}`: ",,,,",
		`{}`:             ",,,,",
	} {
		got, err := newTable(columns, nil, newYork(t)).appendRow(nil, []byte(body))
		if err != nil || string(got) != want+"\r\n" {
			t.Errorf("%s: %q, %v, want %q", body, got, err, want)
		}
	}
	tab := newTable(append(columns, contract.Column{Name: "timezone"}), []string{"customer"}, newYork(t))
	if got := string(tab.appendHeader(nil)); got != "price.amount,price.currency,at,customer.name,price_decimal,at_local,timezone\r\n" {
		t.Errorf("header %q", got)
	}
	got, err := tab.appendRow(nil, []byte(`{"timezone":"Asia/Tokyo","at":"2027-07-03T02:00:00Z","customer":{"name":"Ann"}}`))
	if err != nil || string(got) != ",,2027-07-03T02:00:00Z,Ann,,2027-07-03 11:00:00,Asia/Tokyo\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, wrong := range []string{`{"price":{"amount":1,"currency":"XXXX"}}`, `{"price":{"amount":1.5,"currency":"USD"}}`, `{"at":"yesterday"}`, `{"at":"2027-07-03T02:00:00Z","timezone":"Mars"}`} {
		if got, err := tab.appendRow(nil, []byte(wrong)); err == nil {
			t.Errorf("%s: %q", wrong, got)
		}
	}
}

// The contract's examples of CSV are the first rows of its examples of JSON.
func TestExamplesOfCSV(t *testing.T) {
	t.Parallel()
	for _, op := range load(t).Operations() {
		text, err := os.ReadFile("../../proto/examples/" + op.ID + ".json")
		if op.CSV == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var e struct {
			Request  struct{ Path string }
			Response struct {
				Body struct{ Data []json.RawMessage }
			}
		}
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		var expand []string
		if strings.Contains(e.Request.Path, "expand=customer") {
			expand = []string{"customer"}
		}
		tab := newTable(op.CSV, expand, newYork(t))
		want := tab.appendHeader(nil)
		if len(e.Response.Body.Data) > 0 {
			if want, err = tab.appendRow(want, e.Response.Body.Data[0]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := csv.NewReader(bytes.NewReader(want)).ReadAll(); err != nil {
			t.Error(err)
		}
		name := "../../proto/examples/" + op.ID + ".csv"
		if *update {
			if err := os.WriteFile(name, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s differs from the example of JSON: run this test with -update, then make gen", name)
		}
	}
}
