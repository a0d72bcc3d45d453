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
		"[a, b, c, d]": "x-columns has 4 names for 3 properties",
		"[a, b, b, c]": "x-columns has 4 names for 3 properties",
		"{}":           "x-columns",
		"[]":           "x-columns lacks a",
	} {
		var names yaml.Node
		if err := yaml.Unmarshal([]byte(order), &names); err != nil {
			t.Fatal(err)
		}
		columns := []Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		err := arrange(columns, names.Content[0])
		var got []string
		for _, c := range columns {
			got = append(got, c.Name)
		}
		if err == nil && strings.Join(got, " ") != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", order, got, err, want)
		}
	}
	if err := arrange([]Column{{Name: "a"}}, nil); err == nil {
		t.Error("columns without an order were taken")
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
	if last := got[len(got)-8:]; !slices.Equal(last, strings.Fields("created_at updated_at confirmed_at cancelled_at completed_at customer exclusive event_local_end_date")) {
		t.Errorf("the last columns are %v", last)
	}
}
