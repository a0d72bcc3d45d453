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

	"holdfast.dev/libs/contract"
)

var update = flag.Bool("update", false, "rewrite the CSV examples of the contract, proto/examples/*.csv; then make gen")

func TestColumnsFollowTheContract(t *testing.T) {
	t.Parallel()
	c := load(t)
	names := newTable(c.Operation("listBookings").CSV, nil).names
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
	expanded := newTable(c.Operation("listBookings").CSV, []string{"customer"}).names
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
	tab := newTable([]contract.Column{{Name: "v"}, {Name: "w"}}, nil)
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
	}, []string{"customer"})
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
		tab := newTable(op.CSV, expand)
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
