package domain_test

import (
	"cmp"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

func TestRefundable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ received, refunded, elsewhere, reserved, want int64 }{
		{10, 0, 0, 0, 10}, {10, 3, 0, 0, 7}, {10, 3, 2, 4, 4}, {10, 7, 2, 4, 3}, {10, 12, 0, 0, 0}, {10, 0, 0, 10, 0},
	} {
		p := domain.Intent{Received: c.received, Refunded: c.refunded, RefundedElsewhere: c.elsewhere, RefundReserved: c.reserved}
		if got := p.Refundable(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestNewRefund checks that a refund uses the payments in their order, at most 20 that have something left, and only one currency.
func TestNewRefund(t *testing.T) {
	t.Parallel()
	paid := func(minor int64, code string) domain.Intent {
		return domain.Intent{ID: ids.New[domain.IntentPrefix](), GatewayID: "pi_1", Received: minor, Amount: money.Amount{Minor: minor, Currency: code}}
	}
	repeat := func(n int, p domain.Intent) (list []domain.Intent) {
		for range n {
			list = append(list, p)
		}
		return list
	}
	three := []domain.Intent{paid(0, "USD"), paid(10, "USD"), paid(30, "EUR"), paid(20, "USD")}
	for name, c := range map[string]struct {
		intents      []domain.Intent
		amount, want int64 // amount 0: none given; want 0: refused
		parts        int
		most         int64 // left on the account; 0: enough
	}{
		"tenths of what is left":   {intents: []domain.Intent{paid(850, "KWD")}, want: 70, parts: 1, most: 73},
		"less than a tenth":        {intents: []domain.Intent{paid(850, "KWD")}, most: 7},
		"whole ariary":             {intents: []domain.Intent{paid(1000, "MGA")}, want: 900, parts: 1, most: 950},
		"all that is left":         {three, 0, 30, 2, 0},
		"exactly all":              {three, 30, 30, 2, 0},
		"more than is left":        {three, 31, 0, 0, 0},
		"the first":                {three, 10, 10, 1, 0},
		"a part of the second":     {three, 11, 11, 2, 0},
		"nothing left":             {three[:1], 0, 0, 0, 0},
		"no half tenths":           {[]domain.Intent{paid(20, "KWD")}, 15, 0, 0, 0},
		"over 20":                  {repeat(20, paid(10, "USD")), 0, 200, 20, 0},
		"over 21":                  {repeat(21, paid(10, "USD")), 0, 0, 0, 0},
		"of 21 over 20":            {repeat(21, paid(10, "USD")), 200, 200, 20, 0},
		"of 21, more than 20 have": {repeat(21, paid(10, "USD")), 201, 0, 0, 0},
	} {
		in := domain.RefundInput{}
		if c.amount > 0 {
			in.Amount = &c.amount
		}
		r, err := domain.NewRefund(in, c.intents, cmp.Or(c.most, 1<<40), time.Now())
		if (err == nil) != (c.want > 0) || r.Amount.Minor != c.want || len(r.Allocations) != c.parts || r.Intent != "" {
			t.Errorf("%s: %d in %d, %q, %v", name, r.Amount.Minor, len(r.Allocations), r.Intent, err)
		}
		var sum int64
		for _, a := range r.Allocations {
			sum += a.Minor
		}
		if sum != c.want {
			t.Errorf("%s: the parts are %d", name, sum)
		}
	}
	text := "pi_1"
	if r, err := domain.NewRefund(domain.RefundInput{Intent: &text}, three[1:2], 1<<40, time.Now()); err != nil || r.Intent != "pi_1" {
		t.Errorf("of an intent: %q, %v", r.Intent, err)
	}
}

func TestRefundNamesOneThing(t *testing.T) {
	t.Parallel()
	text := "x"
	for _, c := range []struct {
		in domain.RefundInput
		ok bool
	}{
		{domain.RefundInput{}, false},
		{domain.RefundInput{Intent: &text, Booking: &text}, false},
		{domain.RefundInput{Intent: &text}, true},
		{domain.RefundInput{Booking: &text}, true},
		{domain.RefundInput{Booking: &text, Method: "cash"}, true},
		{domain.RefundInput{Intent: &text, Method: "cash"}, false},
	} {
		if c.in.Method == "" {
			c.in.Method = domain.ByGateway
		}
		if err := c.in.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
}
