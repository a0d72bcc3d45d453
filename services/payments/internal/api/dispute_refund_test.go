package api_test

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
)

// returned returns the amount that the stand-in has refunded of an intent.
func (s *standIn) returned(intent string) (sum int64) {
	s.t.Helper()
	var page struct {
		Data []struct {
			Amount int64
			Status string
		}
	}
	s.call("GET", "/v1/refunds", url.Values{"payment_intent": {intent}, "limit": {"100"}}, &page)
	for _, r := range page.Data {
		if r.Status == "succeeded" {
			sum += r.Amount
		}
	}
	return sum
}

// TestRefundsAroundADispute runs refunds before, during and after a dispute, one after the other and at the same time. It checks
// that the reserved amount of a refused refund is released, that the service never returns more than was charged, and that the
// intent and the ledger match the gateway.
func TestRefundsAroundADispute(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	agrees := func(step string, p intent) {
		t.Helper()
		w.deliver(account, p, "charge.refunded ch", "charge.dispute.updated dp", "payment_intent.succeeded")
		got, held := w.intent(ctx, p.ID), w.standIn.returned(p.ID)
		if got.Refunded != held || got.RefundReserved != held || held > 10_000 {
			t.Errorf("%s: %d are refunded and %d reserved, the gateway has returned %d", step, got.Refunded, got.RefundReserved, held)
		}
		if err := w.balances(ctx, account); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	p, charge := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.deliver(account, p, "payment_intent.succeeded")
	w.refund(ctx, refundOf(p, `,"amount_minor":2000`)).is(201)
	agrees("a refund", p)
	var d struct{ ID string }
	w.standIn.control("charges/"+charge+"/dispute", map[string]any{}, &d)
	agrees("a dispute", p)
	w.refund(ctx, refundOf(p, `,"amount_minor":3000`), key("during")).is(422, "payment_disputed", "payment_intent_id")
	agrees("a refund while it is disputed", p)
	w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": "won"}, nil)
	agrees("it is won", p)
	const left = 8000
	w.refund(ctx, refundOf(p, fmt.Sprintf(`,"amount_minor":%d`, left+1))).is(422)
	w.refund(ctx, refundOf(p, fmt.Sprintf(`,"amount_minor":%d`, left))).is(201)
	agrees("the rest", p)

	for round := range 3 {
		p, charge := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
		w.deliver(account, p, "payment_intent.succeeded")
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				if a := w.refund(ctx, refundOf(p, `,"amount_minor":2500`), key(fmt.Sprintf("at-once-%d-%d", round, n))); a.Status >= 500 && a.Status != 502 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			})
		}
		var d struct{ ID string }
		all.Go(func() { w.standIn.control("charges/"+charge+"/dispute", map[string]any{}, &d) })
		all.Wait()
		agrees("at once", p)
		w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": "lost"}, nil)
		agrees("it is lost", p)
	}
}
