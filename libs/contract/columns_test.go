package contract

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// The order of columns does not follow the order of properties, and a property that x-columns omits is an error.
func TestColumnsAreWhereTheContractListsThem(t *testing.T) {
	t.Parallel()
	for order, want := range map[string]string{
		"[b, c, a]":    "b c a",
		"[a, b]":       "x-columns lacks c",
		"[a, b, c, d]": "x-columns: d is not a property, and cannot be derived from one",
		"[a, b, b, c]": "x-columns repeats b",
		"{}":           "x-columns",
		"[]":           "x-columns lacks a",
	} {
		var names yaml.Node
		if err := yaml.Unmarshal([]byte(order), &names); err != nil {
			t.Fatal(err)
		}
		columns := []Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		columns, err := arrange(columns, names.Content[0])
		var got []string
		for _, c := range columns {
			got = append(got, c.Name)
		}
		if err == nil && strings.Join(got, " ") != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", order, got, err, want)
		}
	}
	if _, err := arrange([]Column{{Name: "a"}}, nil); err == nil {
		t.Error("columns without an order were taken")
	}
}

func yamlList(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var list yaml.Node
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list.Content[0]
}

// A derived column has the name of a property that has its form, and a suffix.
func TestDerivedColumnsOfTheContract(t *testing.T) {
	t.Parallel()
	price := Column{Name: "price", Properties: []Column{{Name: "amount"}, {Name: "currency"}}}
	columns := []Column{price, {Name: "at"}, {Name: "customer", Expand: true}}
	if got, err := arrange([]Column{{Name: "unit_id"}}, yamlList(t, "[unit_id, unit_name]")); err != nil || got[1].Of != "unit_id" || got[1].Form != Name {
		t.Errorf("%+v, %v", got, err)
	}
	for order, want := range map[string]string{
		"[price, at, customer, price_decimal, at_local]": "",
		"[price, at, customer, at_decimal]":              "x-columns: at_decimal is not a property, and cannot be derived from one",
		"[price, at, customer, price_local]":             "x-columns: price_local is not a property, and cannot be derived from one",
		"[price, at, customer, customer_local]":          "x-columns: customer_local is not a property, and cannot be derived from one",
		"[price, at, customer, price_name]":              "x-columns: price_name is not a property, and cannot be derived from one",
		"[price, at, customer, on_local]":                "x-columns: on_local is not a property, and cannot be derived from one",
	} {
		got, err := arrange(columns, yamlList(t, order))
		if want != "" {
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v", order, err)
			}
			continue
		}
		if err != nil || got[3].Of != "price" || got[3].Form != Decimal || got[4].Of != "at" || got[4].Form != Local {
			t.Errorf("%s: %+v, %v", order, got, err)
		}
	}
}

// The columns of bookings keep their positions, although the properties of their bodies were reordered later.
func TestColumnsOfBookingsStay(t *testing.T) {
	t.Parallel()
	c, err := Load(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, column := range c.Operation("listBookings").CSV {
		got = append(got, column.Name)
	}
	if first := got[:8]; !slices.Equal(first, strings.Fields("id object number status payment_status mode version customer_id")) {
		t.Errorf("the first columns are %v", first)
	}
	middle := strings.Fields("completed_at customer exclusive event_local_end_date total_amount_decimal")
	if at := slices.Index(got, middle[0]); at < 0 || !slices.Equal(got[at:at+len(middle)], middle) {
		t.Errorf("the columns around the first derived one are %v", got)
	}
	if last := got[len(got)-10:]; !slices.Equal(last, strings.Fields("customer_name unit_name tax_behavior tax_breakdown tax_amount gross_amount tax_amount_decimal gross_amount_decimal amount_credited amount_credited_decimal")) {
		t.Errorf("the last columns are %v", last)
	}
}
