package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// TestMoneyOfABooking checks that a booking's page shows next to each other what its price is, what was paid, returned and credited,
// and what is due, and each status of its payment in words.
func TestMoneyOfABooking(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	usd := func(amount int) map[string]any { return map[string]any{"amount": amount, "currency": "USD"} }
	for status, word := range map[string]string{"partially_paid": "partially paid", "credited": "credited", "overpaid": "overpaid"} {
		p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{
			"payment_status": status, "gross_amount": usd(100_000), "deposit_amount": usd(30_000), "amount_paid": usd(50_000), "amount_refunded": usd(10_000),
			"amount_credited": usd(40_000), "amount_due": usd(20_000),
		})))
		text := strings.Join(strings.Fields(textOf(parse(t, p.get("viewer", where+"bookings/bk"+oneID).Body.String()))), " ")
		const amounts = "Total with tax $1,000.00 Deposit $300.00 Paid $500.00 Refunded $100.00 Credited $400.00 Amount due $200.00"
		if !strings.Contains(text, amounts) || !strings.Contains(text, "Payment "+word) {
			t.Errorf("%s: %s", status, text)
		}
	}
}

// TestRecordedRefund checks that the form of a booking's refund also records money that was handed back. A payment intent is refunded
// through the payment gateway only, so its form offers no other method.
func TestRecordedRefund(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "refunds/new?booking_id=bk" + oneID
	if link := `href="` + path; !strings.Contains(p.get("owner", where+"bookings/bk"+oneID).Body.String(), link) {
		t.Errorf("the page of a booking has no %s", link)
	}
	if got := p.fill("owner", path, nil).Get("method"); got != "gateway" {
		t.Errorf("the method is %q", got)
	}
	form := p.fill("owner", path, url.Values{"method": {"cash"}, "amount_minor": {"12.50"}, "reason": {"requested_by_customer"}, "reference": {"Receipt 7"}})
	p.post("owner", path, form)
	c := p.only(t)
	want := "map[amount_minor:1250 booking_id:bk" + oneID + " method:cash reason:requested_by_customer reference:Receipt 7]"
	if got := fmt.Sprint(c.body(t)); c.ID != "createRefund" || got != want {
		t.Errorf("%s %s", c.ID, got)
	}
	if form := p.fill("owner", where+"refunds/new?payment_intent_id=pi"+oneID, nil); form.Has("method") || !form.Has("reference") {
		t.Errorf("%v", form)
	}
	p.setResponse("getRefund", object(exampleObject(t, "getRefund", map[string]any{"method": "cash", "reference": "Receipt 7", "payment_intent_id": nil, "allocations": []any{}})))
	text := strings.Join(strings.Fields(textOf(parse(t, p.get("viewer", where+"refunds/rf"+oneID).Body.String()))), " ")
	if !strings.Contains(text, "Refund method cash Reference Receipt 7") {
		t.Error(text)
	}
}
