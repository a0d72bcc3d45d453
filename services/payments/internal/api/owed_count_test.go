package api_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

// cancelledPayment is a card payment of 10,000 for a booking whose policy refunds half of what is left when it is cancelled.
type cancelledPayment struct {
	*world

	ctx     context.Context
	account domain.Account
	booking domain.Booking
	p       intent
	charge  string
	dispute struct{ ID string }
	objects map[string]string // ids of refunds at the gateway, by name
}

// own creates a refund.
func (c *cancelledPayment) own(name string, minor int64) {
	c.T.Helper()
	r := c.refund(c.ctx, refundOf(c.p, fmt.Sprintf(`,"amount_minor":%d`, minor)), key(name)).is(201).refund()
	c.objects[name] = *r.Allocations[0].Gateway
	c.work()
}

// dashboard creates a refund as the operator would in the gateway's dashboard.
func (c *cancelledPayment) dashboard(name string, minor int64) {
	c.T.Helper()
	var r struct{ ID string }
	c.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {c.p.ID}, "amount": {fmt.Sprint(minor)}}, &r)
	c.objects[name] = r.ID
	c.deliver(c.account, c.p, "charge.refunded ch")
}

// cash records a refund in cash.
func (c *cancelledPayment) cash(minor int64) {
	c.T.Helper()
	c.refund(c.ctx, refundOfBooking(c.booking, fmt.Sprintf(`,"amount_minor":%d,"method":"cash"`, minor)), key("cash")).is(201)
}

// fail lets a refund fail at the bank.
func (c *cancelledPayment) fail(name string) {
	c.T.Helper()
	c.standIn.control("refunds/"+c.objects[name]+"/finish", map[string]any{"outcome": "failed"}, nil)
	c.deliver(c.account, c.p, "charge.refund.updated "+c.objects[name])
}

func (c *cancelledPayment) disputeOf(minor int64) {
	c.T.Helper()
	c.standIn.control("charges/"+c.charge+"/dispute", map[string]any{"amount": minor}, &c.dispute)
	c.deliver(c.account, c.p, "charge.dispute.created dp")
}

func (c *cancelledPayment) decide(outcome string) {
	c.T.Helper()
	c.standIn.control("disputes/"+c.dispute.ID+"/close", map[string]any{"outcome": outcome}, nil)
	c.deliver(c.account, c.p, "charge.dispute.closed dp")
}

// TestReturnsAroundACancellation checks what counts toward the share of a payment that a cancelled booking owes: refunds by every
// method after the cancellation, until they fail, and what a bank has taken back. Earlier refunds do not count, even if they fail
// afterwards. Nothing is owed beyond what was received and not returned.
func TestReturnsAroundACancellation(t *testing.T) {
	t.Parallel()
	type steps []func(*cancelledPayment)
	own := func(name string, minor int64) func(*cancelledPayment) {
		return func(c *cancelledPayment) { c.own(name, minor) }
	}
	dashboard := func(name string, minor int64) func(*cancelledPayment) {
		return func(c *cancelledPayment) { c.dashboard(name, minor) }
	}
	fail := func(name string) func(*cancelledPayment) { return func(c *cancelledPayment) { c.fail(name) } }
	cash := func(c *cancelledPayment) { c.cash(2000) }
	note := func(c *cancelledPayment) {
		c.giveBack(c.ctx, c.booking.ID, ids.New[ids.CreditNotePrefix](), 2000, domain.AnyVersion).is(200)
	}
	dispute := func(minor int64) func(*cancelledPayment) { return func(c *cancelledPayment) { c.disputeOf(minor) } }
	won, lost := func(c *cancelledPayment) { c.decide("won") }, func(c *cancelledPayment) { c.decide("lost") }
	for name, c := range map[string]struct {
		before, after, later steps // before the cancellation, before its share is refunded, and a day later
		returned             int64 // by card in the end
		remaining            int64 // that only a person can return
		late                 bool  // the payment arrives after the cancellation, so that all of it is owed
	}{
		"no other refund":                            {returned: 5000},
		"a refund":                                   {after: steps{own("a", 1000)}, returned: 5000},
		"a refund in the dashboard":                  {after: steps{dashboard("a", 1000)}, returned: 5000},
		"a refund in cash":                           {after: steps{cash}, returned: 3000},
		"more than the share":                        {after: steps{own("a", 6000)}, returned: 6000},
		"a refund by a credit note":                  {after: steps{note}, returned: 3000},
		"an earlier and a later refund":              {before: steps{own("a", 4000)}, after: steps{own("b", 1000)}, returned: 7000},
		"an earlier refund":                          {before: steps{own("a", 2000)}, returned: 6000},
		"an earlier refund fails":                    {before: steps{own("a", 2000)}, after: steps{fail("a")}, returned: 4000},
		"an earlier refund fails later":              {before: steps{own("a", 2000)}, later: steps{fail("a")}, returned: 4000},
		"an earlier one in the dashboard":            {before: steps{dashboard("a", 2000)}, returned: 6000},
		"an earlier one in the dashboard fails":      {before: steps{dashboard("a", 2000)}, after: steps{fail("a")}, returned: 4000},
		"an earlier one there fails later":           {before: steps{dashboard("a", 2000)}, later: steps{fail("a")}, returned: 4000},
		"an earlier refund in cash":                  {before: steps{cash}, returned: 4000},
		"a refund fails":                             {after: steps{own("a", 1000), fail("a")}, returned: 5000},
		"a refund fails later":                       {after: steps{own("a", 1000)}, later: steps{fail("a")}, returned: 5000},
		"one in the dashboard fails later":           {after: steps{dashboard("a", 1000)}, later: steps{fail("a")}, returned: 5000},
		"earlier and later ones fail":                {before: steps{own("a", 1000), dashboard("b", 1000)}, after: steps{own("c", 1000), dashboard("d", 1000)}, later: steps{fail("a"), fail("d")}, returned: 5000},
		"an earlier and a later one there fail":      {before: steps{dashboard("b", 1000)}, after: steps{dashboard("d", 1000)}, later: steps{fail("b"), fail("d")}, returned: 4500},
		"a refund that failed before":                {before: steps{own("a", 1000), fail("a"), dashboard("b", 1000), fail("b")}, returned: 5000},
		"a dispute is won":                           {after: steps{dispute(10_000)}, later: steps{won}, returned: 5000},
		"a dispute is lost":                          {after: steps{dispute(10_000), lost}},
		"a dispute is lost later":                    {after: steps{dispute(10_000)}, later: steps{lost}},
		"a dispute is lost after the refund":         {later: steps{dispute(5000), lost}, returned: 5000},
		"a dispute of a part is lost":                {after: steps{dispute(3000), lost}, remaining: 2000},
		"a dispute was lost":                         {before: steps{dispute(10_000), lost}},
		"a dispute was lost after a refund":          {before: steps{own("a", 4000), dispute(6000), lost}, returned: 4000},
		"a dispute is lost and a refund was in cash": {before: steps{cash}, after: steps{dispute(10_000), lost}},
		"a late payment":                             {late: true, returned: 10_000},
		"a refund of a late payment fails later":     {late: true, after: steps{own("a", 3000)}, later: steps{fail("a")}, returned: 10_000},
		"a refund in cash after a late payment":      {late: true, after: steps{cash}, returned: 8000},
		"a late payment is disputed, and won":        {late: true, after: steps{dispute(10_000)}, later: steps{won}, returned: 10_000},
		"a late payment is disputed, and lost":       {late: true, after: steps{dispute(10_000)}, later: steps{lost}},
		"a late payment was lost":                    {late: true, after: steps{dispute(10_000), lost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx, account := withStandIn(t)
			b := w.bookings.Add(ctx, "confirmed", 10_000, 10_000, "USD")
			p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201).intent()
			s := &cancelledPayment{world: w, ctx: ctx, account: account, booking: b, p: p, charge: w.standIn.confirm(p.ID, "pm_card_visa"), objects: map[string]string{}}
			w.deliver(account, p, "payment_intent.succeeded")
			for _, step := range c.before {
				step(s)
			}
			a := w.account(ctx, b.ID, "")
			due := max(0, a.Received-a.Returned-a.Held) / 2
			if c.late {
				due = 0
			}
			w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, due, map[string]bool{p.ID: c.late}))
			w.lose(ctx, b, "cancelled", 2)
			for _, step := range c.after {
				step(s)
			}
			w.settle()
			for _, step := range c.later {
				step(s)
			}
			w.ahead.Add(int64(nextDay))
			w.settle()
			w.settle()
			if got := w.standIn.returned(p.ID); got != c.returned {
				t.Errorf("%d are returned", got)
			}
			remaining := int64(0)
			for _, o := range w.owedList(ctx).Data {
				remaining += o.RemainingAmount
			}
			if open := w.owedState("open"); remaining != c.remaining || open > 0 != (c.remaining > 0) {
				t.Errorf("%d are owed, %d are open", remaining, open)
			}
			w.balanced()
		})
	}
}
