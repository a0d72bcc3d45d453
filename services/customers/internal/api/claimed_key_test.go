package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
)

// claimants returns the operations that call bookings between two transactions. Each uses its own object.
func (w *world) claimants(ctx context.Context) map[string]func(key header) response {
	w.T.Helper()
	q, l := w.sentQuote(ctx, ""), w.lead(ctx, `"email":"lea@example.com"`)
	return map[string]func(key header) response{
		"accept": func(key header) response { return w.onQuote(ctx, q.ID, "accept", key) },
		"convert": func(key header) response {
			return w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2031-05-01"}}`, key)
		},
	}
}

// TestKeyOfAnAcceptUnderWay checks that no other request can use the key of an accept or a conversion in progress. Such a request
// is refused before it takes effect.
func TestKeyOfAnAcceptUnderWay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"accept", "convert"} {
		w, ctx := newWorld(t), converter(t)
		first, others := w.claimants(ctx)[name], w.claimants(ctx)
		before := w.Count(`select count(*) from customers`)
		begun, release := w.held()
		var both sync.WaitGroup
		both.Go(func() { first("Idempotency-Key: k").is(200) })
		<-begun
		w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: k").is(422, "idempotency_mismatch")
		for _, other := range others {
			other("Idempotency-Key: k").is(422, "idempotency_mismatch")
		}
		release()
		both.Wait()
		if again := first("Idempotency-Key: k").is(200); again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: its response is not repeated", name)
		}
		created := w.Count(`select count(*) from customers`) - before
		if name == "convert" {
			created-- // its own booking
		}
		if n := len(w.bookings.Created()); n != 1 || created != 0 {
			t.Errorf("%s: %d bookings, %d customers of other requests", name, n, created)
		}
	}
}

// TestOneKeyAtOnce checks that exactly one of several different requests with one key has an effect. The others leave no row and
// request nothing from bookings.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 25 {
		ctx := converter(t)
		requests := w.claimants(ctx)
		requests["create"] = func(key header) response { return w.do(ctx, "POST", "/customers", ann, key) }
		before, key := len(w.bookings.Requests()), header(fmt.Sprint("Idempotency-Key: at-once-", round))
		customers := w.Count(`select count(*) from customers`)
		var mu sync.Mutex
		var won []string
		var all sync.WaitGroup
		for name, request := range requests {
			all.Go(func() {
				a := request(key)
				mu.Lock()
				defer mu.Unlock()
				if a.Status < 300 {
					won = append(won, name)
					return
				}
				a.is(422, "idempotency_mismatch", "Idempotency-Key")
			})
		}
		all.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %v had an effect", round, won)
		}
		calls, added := 1, 1
		switch won[0] {
		case "accept":
			added = 0
		case "create":
			calls = 0
		}
		if n := len(w.bookings.Requests()) - before; n != calls {
			t.Fatalf("round %d: %s, and %d calls", round, won[0], n)
		}
		if n := w.Count(`select count(*) from customers`) - customers; n != added {
			t.Fatalf("round %d: %s, and %d customers", round, won[0], n)
		}
		if n := w.Count(`select (select count(*) from quotes where accept_until is not null) + (select count(*) from leads where converting_until is not null)`); n != 0 {
			t.Fatalf("round %d: %d are under way", round, n)
		}
	}
}

// TestKeyAfterAnAcceptWithoutEffect checks that a refusal by bookings releases the key for any request. After an outage, the key
// remains reserved for the first request, which may have had an effect.
func TestKeyAfterAnAcceptWithoutEffect(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"accept", "convert"} {
		w, ctx := newWorld(t), converter(t)
		first := w.claimants(ctx)[name]
		w.fail(errTaken, nil)
		first("Idempotency-Key: k").is(409, "slot_unavailable")
		w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: k").is(201)

		w.fail(nil, apperr.ErrTimeout)
		first("Idempotency-Key: l")
		w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: l").is(422, "idempotency_mismatch")
		w.fail(nil, nil)
		w.resumeAccepts(31 * time.Second)
		w.complete(31 * time.Second)
		fresh := first("Idempotency-Key: l").is(200)
		if again := first("Idempotency-Key: l").is(200); string(again.Body) != string(fresh.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: responded %s, then %s", name, fresh.Body, again.Body)
		}
		if n := len(w.bookings.Created()); n != 1 {
			t.Errorf("%s: %d bookings", name, n)
		}
	}
}
