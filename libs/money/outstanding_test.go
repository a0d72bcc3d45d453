package money_test

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/money"
)

func TestOutstanding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sums money.Outstanding
		want int64
	}{
		"nothing paid":                    {money.Outstanding{Gross: 1000}, 1000},
		"a part is paid":                  {money.Outstanding{Gross: 1000, Received: 400}, 600},
		"paid and refunded":               {money.Outstanding{Gross: 1000, Received: 1000, Returned: 400}, 0},
		"overpaid":                        {money.Outstanding{Gross: 1000, Received: 1200}, 0},
		"invoiced":                        {money.Outstanding{Gross: 1000, Invoiced: 1000, Dues: 1000}, 1000},
		"a deposit is invoiced":           {money.Outstanding{Gross: 1000, Invoiced: 300, Dues: 300}, 1000},
		"the deposit is paid":             {money.Outstanding{Gross: 1000, Invoiced: 300, Placed: 300, Received: 300}, 700},
		"a part is credited":              {money.Outstanding{Gross: 1000, Invoiced: 1000, Placed: 600, Received: 600}, 0},
		"all is credited":                 {money.Outstanding{Gross: 1000, Invoiced: 1000}, 0},
		"credited, and invoiced again":    {money.Outstanding{Gross: 1000, Invoiced: 2000, Dues: 1000}, 1000},
		"refunded, and invoiced again":    {money.Outstanding{Gross: 1000, Invoiced: 1000, Dues: 1000, Received: 1000, Returned: 1000}, 1000},
		"more is invoiced than the price": {money.Outstanding{Gross: 1000, Invoiced: 1300, Dues: 300, Placed: 1000, Received: 1000}, 300},
		"a payment is still to be placed": {money.Outstanding{Gross: 1000, Invoiced: 500, Dues: 500, Received: 500}, 500},
		"its payment is still to arrive":  {money.Outstanding{Gross: 1000, Invoiced: 1000, Placed: 1000}, 1000},
		"without a price":                 {money.Outstanding{Received: 500}, 0},
	} {
		if got := c.sums.Due(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestOutstandingByInvoices checks sums of random invoices and payments against the rule in words, and that it does not matter
// whether a payment is placed before or after it is counted as received.
func TestOutstandingByInvoices(t *testing.T) {
	t.Parallel()
	amount := rapid.Int64Range(0, 99_999_999_999)
	rapid.Check(t, func(t *rapid.T) {
		o := money.Outstanding{Gross: amount.Draw(t, "gross")}
		for range rapid.IntRange(0, 4).Draw(t, "invoices") {
			total := amount.Draw(t, "total")
			credit := rapid.Int64Range(0, total).Draw(t, "credit")
			placed := rapid.Int64Range(0, total-credit).Draw(t, "placed")
			o.Invoiced, o.Placed, o.Dues = o.Invoiced+total, o.Placed+placed, o.Dues+total-credit-placed
		}
		o.Received = o.Placed
		if o.Dues == 0 || rapid.Bool().Draw(t, "returned") { // money that can be placed is placed
			free := amount.Draw(t, "free")
			o.Received += free
			if o.Dues > 0 {
				o.Returned = rapid.Int64Range(free, o.Received).Draw(t, "return")
			} else {
				o.Returned = rapid.Int64Range(0, o.Received).Draw(t, "return")
			}
		}
		free, due := o.Received-o.Placed, o.Due()
		if want := max(0, o.Gross-o.Invoiced-free) + o.Dues; due != want {
			t.Fatalf("%+v: %d is due, want %d", o, due, want)
		}
		if none := max(0, o.Gross-o.Invoiced); due > none+o.Dues || free == 0 && due != none+o.Dues {
			t.Fatalf("%+v: %d is due", o, due)
		}
		if o.Dues > 0 && free == 0 {
			part := rapid.Int64Range(1, o.Dues).Draw(t, "part")
			counted, placed := o, o
			counted.Received += part
			placed.Placed, placed.Dues = placed.Placed+part, placed.Dues-part
			both := placed
			both.Received += part
			if both.Due() != due-part {
				t.Fatalf("%+v: %d is due after %d is paid", o, both.Due(), part)
			}
			if o.Returned == 0 && counted.Due() != both.Due() {
				t.Fatalf("%+v: %d is due while %d is not placed", o, counted.Due(), part)
			}
			if o.Gross <= o.Invoiced && placed.Due() > due {
				t.Fatalf("%+v: %d is due while %d is placed and not received", o, placed.Due(), part)
			}
		}
	})
}
