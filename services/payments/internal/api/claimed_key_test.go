package api_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// claimants returns requests that call the gateway. Each uses its own object.
func (w *world) claimants(ctx context.Context) map[string]func(k header) response {
	w.T.Helper()
	p, more, held := w.paid(ctx, 1000), w.paid(ctx, 1000), w.held(ctx)
	open := w.post(ctx, w.booked(ctx, 1000)).is(201).intent()
	booked := w.booked(ctx, 700)
	return map[string]func(k header) response{
		"refund":       func(k header) response { return w.refund(ctx, refundOf(p, `,"amount_minor":100`), k) },
		"other refund": func(k header) response { return w.refund(ctx, refundOf(more, `,"amount_minor":200`), k) },
		"intent":       func(k header) response { return w.post(ctx, booked, k) },
		"cancel":       func(k header) response { return w.do(ctx, "POST", "/payment-intents/"+open.ID+"/cancel", "", k) },
		"capture":      func(k header) response { return w.do(ctx, "POST", "/payment-intents/"+held.ID+"/capture", "", k) },
	}
}

// counted counts the calls that change something at the gateway.
func (w *world) counted() (calls func() int) {
	var mu sync.Mutex
	n := 0
	w.gateway.Before = func(_ context.Context, call string) error {
		mu.Lock()
		defer mu.Unlock()
		if call == "create" || call == "refund" || call == "cancel" || call == "capture" {
			n++
		}
		return nil
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func (w *world) paymentRows() int {
	return w.Count(`select (select count(*) from refunds) + (select count(*) from payment_intents)`)
}

// TestOneKeyAtOnce checks that exactly one of several different requests with one key has an effect. The others leave no row and
// make no call.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for round := range 25 {
		w.gateway.Before = nil
		requests := w.claimants(ctx)
		calls, rows := w.counted(), w.paymentRows()
		k := key(fmt.Sprint("k", round))
		var mu sync.Mutex
		won := map[string]response{}
		var all sync.WaitGroup
		for name, request := range requests {
			all.Go(func() {
				a := request(k)
				mu.Lock()
				defer mu.Unlock()
				if a.Status < 300 {
					won[name] = a
					return
				}
				a.is(422, "idempotency_mismatch", "Idempotency-Key")
			})
		}
		all.Wait()
		if len(won) != 1 || calls() != 1 {
			t.Fatalf("round %d: %d requests had an effect, %d calls", round, len(won), calls())
		}
		for name, first := range won {
			want := 0
			if name != "cancel" && name != "capture" {
				want = 1
			}
			if n := w.paymentRows() - rows; n != want {
				t.Fatalf("round %d: %s left %d rows", round, name, n)
			}
			if again := requests[name](k); string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
				t.Fatalf("round %d: %s returns %s", round, name, again.Body)
			}
		}
	}
}

// TestKeyOfACallUnderWay checks that no other request can use the key of a call in progress. Such a request is refused before it
// writes a row or calls the gateway.
func TestKeyOfACallUnderWay(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"refund": "refund", "intent": "create", "cancel": "cancel", "capture": "capture"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			requests := w.claimants(ctx)
			begun, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			w.gateway.Before = func(_ context.Context, call string) error {
				if call == kind {
					once.Do(func() { close(begun) })
					<-release
				}
				return nil
			}
			var first sync.WaitGroup
			first.Go(func() {
				if a := requests[name](key("k")); a.Status >= 300 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			})
			<-begun
			rows := w.paymentRows()
			var others sync.WaitGroup
			for other, request := range requests {
				if other != name {
					others.Go(func() { request(key("k")).is(422, "idempotency_mismatch", "Idempotency-Key") })
				}
			}
			finished := make(chan struct{})
			go func() { others.Wait(); close(finished) }()
			select {
			case <-finished:
			case <-time.After(20 * time.Second): // the requests wait for the gateway, which they must not have called
				t.Error("another request with the key waits")
			}
			if n := w.paymentRows() - rows; n != 0 {
				t.Errorf("%d rows of the others", n)
			}
			close(release)
			first.Wait()
			others.Wait()
		})
	}
}

// TestKeyAfterACallWithoutResponse checks that a definite refusal releases the key for any request. After an unknown outcome, the
// key remains reserved for the first request, even when a completer has ended the call. The same request then succeeds, and its
// response is repeated.
func TestKeyAfterACallWithoutResponse(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"refund": "refund", "intent": "create"} {
		for _, lost := range []error{errLost, &domain.BrokenError{Status: 500}, &domain.BrokenError{Status: 503}} {
			w := newWorld(t)
			ctx := w.tenant()
			requests := w.claimants(ctx)
			refused := &domain.RefusedError{Failure: domain.Failure{Code: "refused", Message: "No."}}
			for i, cause := range []error{refused, &domain.BusyError{RetryAfter: time.Second}} {
				k := key(fmt.Sprint("free", i))
				w.gateway.Before = onCall(kind, 1, func() error { return cause })
				requests[name](k).is(502, "payment_intent_failed")
				w.gateway.Before = nil
				free := map[int]string{0: "other refund", 1: "cancel"}[i]
				if a := requests[free](k); a.Status >= 300 {
					t.Errorf("%s after %v: %d %s", name, cause, a.Status, a.Body)
				}
			}
			w.gateway.After = onCall(kind, 1, func() error { return lost })
			requests[name](key("l")).is(502, "payment_intent_failed")
			requests["capture"](key("l")).is(422, "idempotency_mismatch", "Idempotency-Key")
			w.ahead.Add(int64(31 * time.Second))
			w.complete()
			w.completeRefunds()
			requests["capture"](key("l")).is(422, "idempotency_mismatch", "Idempotency-Key")
			created := requests[name](key("l")).is(201)
			if again := requests[name](key("l")).is(201); string(again.Body) != string(created.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s after %v: %s, then %s", name, errors.Unwrap(lost), created.Body, again.Body)
			}
		}
	}
}
