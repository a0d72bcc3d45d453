package main

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

// TestMoney records money that was paid and handed back in cash, credits a part, and checks the amounts of the booking as JSON, as CSV
// and in the tools of assistants.
func TestMoney(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	unit, pack := c.tour("Money " + unique())
	customer := c.ok("customers", "create", "--first-name", "Payer", "--email", "payer@example.com", "--jq", ".id")
	booking := c.ok("bookings", "create", "--customer-id", customer, "--unit-id", unit, "--package-id", pack, "--event-date", "2031-07-05",
		"--event-start-time", "09:00", "--jq", ".id")
	invoice := c.ok("invoices", "create", "--customer-id", customer, "--booking-id", booking, "--jq", ".id", "--line-items",
		`{"description":"Tour","quantity":1,"unit_amount":{"amount":8000,"currency":"USD"}}`)
	c.ok("invoices", "open", invoice)
	c.ok("invoices", "create-credit-note", invoice, "-d", `{"amount":{"amount":3000,"currency":"USD"}}`)
	c.ok("invoices", "record-payment", invoice, "--amount.amount", "5000", "--amount.currency", "USD", "--method", "cash")
	got := c.ok("refunds", "create", "--booking-id", booking, "--amount-minor", "1000", "--method", "cash", "--reference", "receipt 7",
		"--reason", "requested_by_customer", "--jq", ".method, .reference, .status")
	if want := "cash\nreceipt 7\nsucceeded"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	amounts := []string{"bookings", "get", booking, "--jq", "[.gross_amount, .amount_paid, .amount_refunded, .amount_credited, .amount_due] | map(.amount) | @json"}
	const want = "[8000,5000,1000,3000,0]"
	await(t.Context(), t, "the money on the booking", func() bool { return c.ok(amounts...) == want })
	rows, err := csv.NewReader(strings.NewReader(c.ok("bookings", "list", "--customer-id", customer, "-o", "csv"))).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v %v", rows, err)
	}
	for column, want := range map[string]string{
		"gross_amount.amount": "8000", "gross_amount_decimal": "80.00", "amount_credited.amount": "3000", "amount_credited_decimal": "30.00", "tax_breakdown": "[]",
	} {
		if i := slices.Index(rows[0], column); i < 0 || rows[1][i] != want {
			t.Errorf("the column %s is not %s: %v", column, want, rows)
		}
	}
	a := c.assist()
	a.ok("get_record", args{"id": booking}).is(t, "object.refunded.amount_minor", 1000)
	for _, id := range []string{booking, invoice} {
		a.ok("get_record", args{"id": id}).is(t, "object.credited.amount_minor", 3000)
	}
}
