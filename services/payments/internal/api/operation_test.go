package api_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// TestKeyOfACallThatTakesDays checks that a call with an unknown outcome reserves its key as long as it takes, even beyond the 24
// hours of a key. The same request gets the result, and creates nothing a second time.
func TestKeyOfACallThatTakesDays(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"refund": "refund", "intent": "create"} {
		w := newWorld(t)
		ctx := w.tenant()
		requests := w.claimants(ctx)
		rows := w.paymentRows()
		gateway := func() int { return w.gateway.Created() + len(w.gateway.Refunds()) }
		before := gateway()
		w.gateway.After = onCalls(kind, func() error { return errLost })
		requests[name](key("k")).is(502, "payment_intent_failed")
		w.gateway.Before = func(context.Context, string) error { return errLost }
		for range 30 {
			w.ahead.Add(int64(time.Hour))
			w.complete()
			w.completeRefunds()
		}
		requests["capture"](key("k")).is(422, "idempotency_mismatch", "Idempotency-Key")
		w.gateway.After, w.gateway.Before = nil, nil
		w.gateway.Forget()
		w.ahead.Add(int64(2 * time.Hour))
		requests[name](key("k")).is(409, "idempotency_in_progress") // another call now would have a second effect
		w.complete()
		w.completeRefunds()
		created := requests[name](key("k")).is(201)
		if n := gateway() - before; n != 1 {
			t.Errorf("%s: the gateway has created %d", name, n)
		}
		if again := requests[name](key("k")).is(201); string(again.Body) != string(created.Body) {
			t.Errorf("%s: %s, then %s", name, created.Body, again.Body)
		}
		if n := w.paymentRows() - rows; n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

// TestKeyOfACallThatIsRefusedLater checks that a completer that finds a refusal releases the key for any request.
func TestKeyOfACallThatIsRefusedLater(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"refund": "refund", "intent": "create"} {
		w := newWorld(t)
		ctx := w.tenant()
		requests := w.claimants(ctx)
		w.gateway.Before = onCalls(kind, func() error { return errLost })
		requests[name](key("k")).is(502, "payment_intent_failed")
		w.gateway.Before = onCalls(kind, func() error {
			return &domain.RefusedError{Failure: domain.Failure{Code: "refused", Message: "No."}}
		})
		w.ahead.Add(int64(time.Minute))
		w.complete()
		w.completeRefunds()
		w.gateway.Before = nil
		other := map[string]string{"refund": "other refund", "intent": "cancel"}[name]
		if a := requests[other](key("k")); a.Status >= 300 {
			t.Errorf("%s, then %s: %d %s", name, other, a.Status, a.Body)
		}
	}
}

// onCalls fails all calls of a kind.
func onCalls(kind string, fail func() error) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if call == kind {
			return fail()
		}
		return nil
	}
}

// TestSecondRequestFindsTheFirst checks two requests with one key that have both found nothing to resume when the first one begins.
// The second one gets the intent of the first.
func TestSecondRequestFindsTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	body := w.booked(ctx, 100)
	var both sync.WaitGroup
	both.Add(2)
	var calls atomic.Int32
	w.bookings.Fail = func() error { // after resume, before begin
		if calls.Add(1) <= 2 {
			both.Done()
			both.Wait()
		}
		return nil
	}
	bodies := make([]string, 2)
	atOnce(2, func(i int) { bodies[i] = string(w.post(ctx, body, key("k")).is(201).Body) })
	if n := w.Count(`select count(*) from payment_intents`); bodies[0] != bodies[1] || w.gateway.Created() != 1 || n != 1 {
		t.Errorf("%d created, %d rows, responses %v", w.gateway.Created(), n, bodies)
	}
}
