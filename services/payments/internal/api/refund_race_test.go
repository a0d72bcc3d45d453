package api_test

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

// impatient makes requests wait for each other only for a short time.
func (w *world) impatient() {
	w.T.Helper()
	w.maxWait = 100 * time.Millisecond
	w.engine = w.serve(w.DB.App)
}

// nth runs a function at one of the calls of refunds.
func nth(calls *atomic.Int64, which int64, do func() error) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if call == "refund" && calls.Add(1) == which {
			return do()
		}
		return nil
	}
}

// TestLateRefusalOfARefundThatWasCreated checks that a refusal that arrives after another process has completed the refund changes
// nothing: the client gets the refund.
func TestLateRefusalOfARefundThatWasCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	var calls atomic.Int64
	w.gateway.Before = nth(&calls, 1, func() error {
		w.ahead.Add(int64(31 * time.Second)) // the lease has ended
		w.completeRefunds()
		return &domain.RefusedError{Failure: domain.Failure{Code: "charge_disputed", Message: "The charge has a dispute."}}
	})
	r := w.refund(ctx, refundOf(p, `,"amount_minor":400`), key("k")).is(201).refund()
	if r.Status != "succeeded" || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%+v, %d created", r, len(w.gateway.Refunds()))
	}
	if n := w.Count(`select refund_reserved from payment_intents`); n != 400 {
		t.Errorf("%d are reserved", n)
	}
}

// TestLateRefusalOfAnEarlierAttempt checks that a refusal of an attempt does not affect the next one, which another process has
// begun and whose response is lost. Its amount stays reserved.
func TestLateRefusalOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	w.impatient()
	p := w.paid(ctx, 1000)
	var calls atomic.Int64
	w.gateway.Before = nth(&calls, 1, func() error {
		w.ahead.Add(int64(24 * time.Hour))
		w.gateway.Forget()
		w.completeRefunds()
		return &domain.RefusedError{Failure: domain.Failure{Code: "charge_disputed", Message: "The charge has a dispute."}}
	})
	w.gateway.After = onCall("refund", 1, func() error { return errLost })
	body := refundOf(p, `,"amount_minor":1000`)
	w.refund(ctx, body, key("k")).is(409, "idempotency_in_progress")
	w.refund(ctx, body, key("other")).is(409, "nothing_to_refund")
	w.ahead.Add(int64(24 * time.Hour))
	w.completeRefunds()
	if r := w.refund(ctx, body, key("k")).is(201).refund(); r.Status != "succeeded" || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%+v, %d created", r, len(w.gateway.Refunds()))
	}
}

// TestRepeatedRefundLeavesTheCallToOthers checks that a repeated request makes no call to the gateway while another request is
// calling it, or if the gateway may have forgotten the first call. Such a call would create the refund twice.
func TestRepeatedRefundLeavesTheCallToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	w.impatient()
	p := w.paid(ctx, 1000)
	body := refundOf(p, `,"amount_minor":400`)
	var calls atomic.Int64
	w.gateway.Before = nth(&calls, 1, func() error {
		w.refund(ctx, body, key("k")).is(409, "idempotency_in_progress")
		return nil
	})
	w.gateway.After = onCall("refund", 1, func() error { return errLost })
	w.refund(ctx, body, key("k")).is(502, "payment_intent_failed")
	w.ahead.Add(int64(23 * time.Hour))
	w.gateway.Forget()
	w.refund(ctx, body, key("k")).is(409, "idempotency_in_progress")
	if calls.Load() != 1 || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%d calls, %d created", calls.Load(), len(w.gateway.Refunds()))
	}
	w.completeRefunds()
	w.refund(ctx, body, key("k")).is(201)
	if n := len(w.gateway.Refunds()); n != 1 {
		t.Errorf("%d created", n)
	}
}

// TestRefundHoldsItsLease checks that no other process makes calls for a refund of many payments, which takes long, while its
// process continues.
func TestRefundHoldsItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 3000, 3000, "USD")
	for range 3 {
		w.paidOf(ctx, b, 1000)
	}
	var calls atomic.Int64
	w.gateway.Before = func(_ context.Context, call string) error {
		if call != "refund" {
			return nil
		}
		w.ahead.Add(int64(20 * time.Second))
		if calls.Add(1) == 3 {
			w.completeRefunds()
		}
		return nil
	}
	w.refund(ctx, refundOfBooking(b, "")).is(201)
	if calls.Load() != 3 {
		t.Errorf("%d calls for 3 payments", calls.Load())
	}
	w.ahead.Add(int64(time.Hour))
	if w.completeRefunds(); calls.Load() != 3 || w.Count(`select count(*) from refunds where leased_until is not null`) != 0 {
		t.Error("it has not ended")
	}
}

// behind is a gateway that reads its list of refunds before other processes continue. The list does not contain what they do in the
// meantime.
type behind struct {
	*attempts

	others func(call int64)
	calls  atomic.Int64
}

func (g *behind) FindRefund(ctx context.Context, a domain.Account, part domain.Allocation, since time.Time) (*domain.GatewayRefund, error) {
	n := g.calls.Add(1)
	if _, err := g.attempts.FindRefund(ctx, a, part, since); err != nil {
		return nil, err
	}
	g.others(n)
	return nil, nil
}

// TestRefundIsNotAttemptedConcurrently checks a gateway whose list does not contain the refund yet. No other attempt begins if an
// event has reported the refund in the meantime, or if another process has begun an attempt.
func TestRefundIsNotAttemptedConcurrently(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		created bool // by the first attempt
		want    string
	}{"an event": {true, "1 find"}, "another process": {false, "1 find find 2"}} {
		w := newWorld(t)
		seen := &behind{attempts: &attempts{Gateway: w.gateway}}
		w.around = func(app.Gateway) app.Gateway { return seen }
		w.engine = w.serve(w.DB.App)
		ctx := w.tenant()
		p := w.paid(ctx, 1000)
		lost := onCall("refund", 1, func() error { return errLost })
		if c.created {
			w.gateway.After = lost
			seen.others = func(int64) { w.readRefund(ctx, p.ID, w.gateway.Refunds()[0].ID) }
		} else {
			w.gateway.Before, w.gateway.After = lost, onCall("refund", 1, func() error { return errLost })
			seen.others = func(call int64) {
				if call == 1 {
					w.ahead.Add(int64(time.Minute))
					w.completeRefunds()
				}
			}
		}
		w.refund(ctx, refundOf(p, `,"amount_minor":400`), key("k")).is(502, "payment_intent_failed")
		w.ahead.Add(int64(24 * time.Hour))
		w.gateway.Forget()
		w.completeRefunds()
		if got := strings.Join(seen.list, " "); got != c.want || len(w.gateway.Refunds()) != 1 {
			t.Errorf("%s: %s, %d created", name, got, len(w.gateway.Refunds()))
		}
	}
}

// TestRefundThatAnEventCompletes checks that an event can report a refund before its call ends without a response. The refund is
// then complete, for workers and for the client that repeats its request.
func TestRefundThatAnEventCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	w.gateway.After = onCall("refund", 1, func() error {
		w.readRefund(ctx, p.ID, w.gateway.Refunds()[0].ID)
		return errLost
	})
	body := refundOf(p, `,"amount_minor":400`)
	w.refund(ctx, body, key("k")).is(502, "payment_intent_failed")
	const left = `select count(*) from refunds where leased_until is not null`
	if n := w.Count(left); n != 0 {
		t.Error("it is left to a worker")
	}
	if r := w.refund(ctx, body, key("k")).is(201).refund(); r.Status != "succeeded" || w.Count(left) != 0 || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%+v, %d are left", r, w.Count(left))
	}
}

// TestLateReadOfARefund checks that a read of a refund that ends late does not restore the previous state.
func TestLateReadOfARefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	w.gateway.RefundStatus = domain.RefundPending
	r := w.refund(ctx, refundOf(p, `,"amount_minor":400`)).is(201).refund()
	gateway := *r.Allocations[0].Gateway
	w.gateway.After = onCall("readRefund", 1, func() error {
		w.gateway.EndRefund(gateway, domain.RefundFailed)
		w.readRefund(ctx, p.ID, gateway)
		return nil
	})
	w.readRefund(ctx, p.ID, gateway)
	if got := w.getRefund(ctx, r.ID); got.Status != "failed" || got.Version != 2 {
		t.Errorf("%+v", got)
	}
}

// TestRefundSucceedsAfterItFailed checks that a refund that failed and that the gateway has made after all is recorded, although the money was
// handed back in the meantime.
func TestRefundSucceedsAfterItFailed(t *testing.T) {
	t.Parallel()
	for _, status := range []domain.RefundStatus{domain.RefundPending, domain.RefundSucceeded} {
		w := newWorld(t)
		ctx := w.tenant()
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		w.gateway.RefundStatus = domain.RefundPending
		r := w.refund(ctx, refundOf(p, `,"amount_minor":600`)).is(201).refund()
		gateway := *r.Allocations[0].Gateway
		w.gateway.EndRefund(gateway, domain.RefundFailed)
		w.readRefund(ctx, p.ID, gateway)
		w.refund(ctx, refundOfBooking(b, `,"method":"cash"`)).is(201)
		w.gateway.EndRefund(gateway, status)
		intent, err := storeIntent(ctx, w, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		account, err := w.accounts.Show(ctx)
		if err == nil {
			err = w.owed.Refunds.Refresh(ctx, account, intent, gateway)
		}
		if got := w.getRefund(ctx, r.ID); err != nil || got.Status != string(status) {
			t.Errorf("%s: %+v, %v", status, got, err)
		}
		if n := w.Count(`select unbacked from money_accounts`); n != 600 {
			t.Errorf("%s: %d are not backed", status, n)
		}
		w.refund(ctx, refundOfBooking(b, `,"method":"cash","amount_minor":1`)).is(409, "nothing_to_refund")
	}
}

// TestRefundFailsWhileAnotherIsOpen checks that an event about a refund that fails after its end is also processed while another
// refund of the payment is open.
func TestRefundFailsWhileAnotherIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	ended := w.refund(ctx, refundOf(p, `,"amount_minor":400`)).is(201).refund()
	w.gateway.RefundStatus = domain.RefundPending
	open := w.refund(ctx, refundOf(p, `,"amount_minor":300`)).is(201).refund()
	w.gateway.EndRefund(*ended.Allocations[0].Gateway, domain.RefundFailed)
	w.readRefund(ctx, p.ID, *ended.Allocations[0].Gateway)
	if one, other := w.getRefund(ctx, ended.ID), w.getRefund(ctx, open.ID); one.Status != "failed" || other.Status != "pending" {
		t.Errorf("%+v, %+v", one, other)
	}
}

// TestRefundWithForeignMetadata checks a refund of another program with this platform's metadata: of a refund that does not exist,
// or a copy of another refund's. Its events are processed, it counts as refunded, and no refund of this platform changes.
func TestRefundWithForeignMetadata(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.deliver(account, p, "payment_intent.succeeded")
	r := w.refund(ctx, refundOf(p, `,"amount_minor":1000`)).is(201).refund()
	var part [16]byte
	if err := w.Owner().QueryRow(ctx, `select id from refund_allocations`).Scan(&part); err != nil {
		t.Fatal(err)
	}
	for _, row := range []domain.AllocationID{ids.New[domain.AllocationPrefix](), ids.FromUUID[domain.AllocationPrefix](part)} {
		var created struct{ ID string }
		w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {p.ID}, "amount": {"500"}, "metadata[holdfast_refund]": {row.String()}}, &created)
		w.deliver(account, p, "charge.refund.updated "+created.ID)
		if n := w.Count(`select count(*) from gateway_events where due_at is not null`); n != 0 {
			t.Errorf("%d events are left", n)
		}
	}
	got := w.getRefund(ctx, r.ID)
	if got.Version != r.Version || *got.Allocations[0].Gateway != *r.Allocations[0].Gateway || w.refunded(ctx, p.ID) != 2000 {
		t.Errorf("%+v, %d refunded", got, w.refunded(ctx, p.ID))
	}
}
