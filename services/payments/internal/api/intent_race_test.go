package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

// calls counts the calls of the gateway by their names.
type calls map[string]int

// counting counts the calls of the gateway. Each call is counted before the test's own function runs.
func (w *world) counting(before func(call string, n int) error) calls {
	seen := calls{}
	var mu sync.Mutex
	w.gateway.Before = func(_ context.Context, call string) error {
		mu.Lock()
		seen[call]++
		n := seen[call]
		mu.Unlock()
		if before == nil {
			return nil
		}
		return before(call, n)
	}
	return seen
}

// TestLateRefusalOfAnIntent checks that a refusal of a client's call that arrives after the completer has created the intent
// changes nothing: the client gets the intent.
func TestLateRefusalOfAnIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	w.counting(func(call string, n int) error {
		if call != "create" || n > 1 {
			return nil
		}
		w.ahead.Add(int64(31 * time.Second))
		w.complete()
		return &domain.BusyError{RetryAfter: time.Second}
	})
	p := w.post(ctx, w.booked(ctx, 100), key("k")).is(201).intent()
	if got := w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).intent(); got.Status != "requires_payment_method" || w.gateway.Created() != 1 {
		t.Errorf("%+v, %d created", got, w.gateway.Created())
	}
}

// TestBusyAfterAStall checks that a busy gateway does not end an intent or a refund for a process that stalled, if the completer has created
// it in the meantime and the response was lost.
func TestBusyAfterAStall(t *testing.T) {
	t.Parallel()
	stall := func(w *world, call string, complete func(context.Context) error) {
		w.counting(func(got string, n int) error {
			if got != call || n > 1 {
				return nil
			}
			w.ahead.Add(int64(31 * time.Second))
			w.gateway.After = onCall(call, 1, func() error { return errLost })
			_ = complete(t.Context()) // the outcome is unknown
			w.gateway.After = nil
			return &domain.BusyError{RetryAfter: time.Second}
		})
	}
	w := newWorld(t)
	ctx := w.tenant()
	stall(w, "create", w.completer.Run)
	b := w.booked(ctx, 100)
	w.post(ctx, b, key("k")).is(409, "idempotency_in_progress")
	w.ahead.Add(int64(20 * time.Second))
	w.post(ctx, b, key("k")).is(201)
	if n := w.Count(`select count(*) from payment_intents`); n != 1 || w.gateway.Created() != 1 {
		t.Errorf("%d intents, %d created", n, w.gateway.Created())
	}
	w = newWorld(t)
	ctx = w.tenant()
	p := w.paid(ctx, 1000)
	stall(w, "refund", w.refunder.Run)
	w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("k")).is(409, "idempotency_in_progress")
	w.ahead.Add(int64(20 * time.Second))
	w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("k")).is(201)
	if n := w.Count(`select count(*) from refunds`); n != 1 || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%d refunds, %d created", n, len(w.gateway.Refunds()))
	}
}

// TestCompleterLeavesTheCallsOfOthers checks that a completer ignores a call that another process ends or takes at the same moment.
func TestCompleterLeavesTheCallsOfOthers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"refused": `update payment_intents set status = 'refused', leased_until = null`,
		"taken":   `update payment_intents set leased_until = leased_until + interval '1 hour'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			w.gateway.Before = func(context.Context, string) error { return errLost }
			w.post(ctx, w.booked(ctx, 100), key("k")).is(502, "payment_intent_failed")
			seen := w.counting(nil)
			w.ahead.Add(int64(time.Minute))
			tx, err := w.Owner().Begin(t.Context())
			if err == nil {
				_, err = tx.Exec(t.Context(), change)
			}
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- w.completer.Run(t.Context()) }()
			w.Waiting("transactionid")
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil || len(seen) != 0 {
				t.Errorf("%v, calls %v", err, seen)
			}
		})
	}
}

// TestResponseToARepetitionIsLostToo checks that a repetition whose outcome is unknown too belongs to the same attempt. It is
// repeated after a short pause, and no search takes place.
func TestResponseToARepetitionIsLostToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	seen := w.counting(func(call string, n int) error {
		if call == "create" && n <= 2 {
			return errLost
		}
		return nil
	})
	w.post(ctx, w.booked(ctx, 100), key("k")).is(502, "payment_intent_failed")
	for range 2 {
		w.ahead.Add(int64(3 * time.Second))
		w.complete()
	}
	if seen["create"] != 3 || seen["find"] != 0 || w.gateway.Created() != 1 {
		t.Errorf("calls %v, %d created", seen, w.gateway.Created())
	}
	if n := w.Count(`select attempt from payment_intents`); n != 1 {
		t.Errorf("attempt %d", n)
	}
}

// TestIntentEndsDuringTheSearch checks that a completer that searches for an intent does not create it if, in the meantime, another
// one creates it or the gateway refuses it.
func TestIntentEndsDuringTheSearch(t *testing.T) {
	t.Parallel()
	for status, verdict := range map[string]error{
		"requires_payment_method": nil, "refused": &domain.RefusedError{Failure: domain.Failure{Code: "account_invalid", Message: "No."}},
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			w.counting(func(call string, n int) error {
				switch {
				case call == "create" && n <= 2:
					return &domain.BrokenError{Status: 500}
				case call == "create" && n == 3:
					return verdict
				default:
					return nil
				}
			})
			searches := 0
			w.gateway.After = func(_ context.Context, call string) error {
				if call == "find" {
					if searches++; searches == 1 { // nothing is found
						w.ahead.Add(int64(31 * time.Second))
						w.complete()
					}
				}
				return nil
			}
			w.post(ctx, w.booked(ctx, 100), key("k")).is(502, "payment_intent_failed")
			w.ahead.Add(int64(2 * time.Second))
			w.complete()
			want := 0
			if verdict == nil {
				want = 1
			}
			if n := w.Count(`select count(*) from payment_intents where status = $1`, status); n != 1 || w.gateway.Created() != want {
				t.Errorf("%d intents are %s, %d created", n, status, w.gateway.Created())
			}
		})
	}
}

// TestUnansweredCallIsNotGivenUp checks that a call without a response stays open as long as the gateway does not respond, and ends
// when the gateway finally refuses the intent.
func TestUnansweredCallIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	w.counting(func(string, int) error { return errLost })
	w.post(ctx, w.booked(ctx, 10), key("k")).is(502, "payment_intent_failed") // less than the gateway accepts
	w.ahead.Add(int64(4 * 24 * time.Hour))
	w.complete()
	if n := w.Count(`select count(*) from payment_intents where status = 'creating'`); n != 1 {
		t.Errorf("%d intents are left", n)
	}
	w.Exec(`update payment_intents set attempted_at = attempted_at + interval '4 days'`) // the gateway knows the attempt
	w.gateway.Before = nil
	w.ahead.Add(int64(time.Hour))
	w.complete()
	if n := w.Count(`select count(*) from payment_intents where status = 'refused'`); n != 1 {
		t.Errorf("%d intents are refused", n)
	}
}

// TestReadsAreAppliedInTheirOrder checks that the response to a read that began before another read, but arrives after it, changes
// nothing, regardless of the result of the other read.
func TestReadsAreAppliedInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, newer := range []domain.Status{domain.RequiresPaymentMethod, domain.RequiresAction} { // the first status is already known
		w := newWorld(t)
		ctx := w.tenant()
		p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
		set := func(s domain.Status) { w.gateway.Change(p.ID, func(snapshot *domain.Snapshot) { snapshot.Status = s }) }
		set(domain.Processing)
		reads := 0
		w.gateway.After = func(context.Context, string) error {
			if reads++; reads == 1 {
				set(newer)
				w.refresh(ctx, p.ID)
			}
			return nil
		}
		w.refresh(ctx, p.ID)
		if got := w.intent(ctx, p.ID); got.Status != newer || reads != 2 {
			t.Errorf("%s after %d reads, want %s", got.Status, reads, newer)
		}
	}
}

// TestEventsLeadToNoOtherReads checks that two processes that find the events of an intent at the same time read the intent once.
// They read no refund if no event is about one.
func TestEventsLeadToNoOtherReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	p := w.paid(ctx, 1000)
	w.gateway.RefundStatus = domain.RefundPending
	w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("r")).is(201)
	w.work()
	seen := w.counting(nil)
	w.event(account, "whsec_1", time.Now(), eventBody("evt_1", "payment_intent.succeeded", fmt.Sprintf(`{"id":%q}`, p.ID))).is(200)
	release := w.Hold(`select from payment_intents for update`)
	var all sync.WaitGroup
	for range 2 {
		process := *w.events
		all.Go(func() {
			if err := process.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	w.Waiting("transactionid tuple")
	release()
	all.Wait()
	if fmt.Sprint(seen) != "map[read:1]" {
		t.Errorf("calls for one event: %v", seen)
	}
}

// paged is a gateway that returns an intent in two pages. It returns disputes only for an intent that is known to have had one.
type paged struct {
	app.Gateway

	pages    int
	disputes []domain.Dispute
}

func (g *paged) Read(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	snapshot, err := g.Gateway.Read(ctx, a, p)
	if g.pages++; g.pages%2 == 1 {
		snapshot.More = true
		return snapshot, err
	}
	if p.EverDisputed {
		snapshot.DisputesRead, snapshot.Disputes = true, g.disputes
	}
	return snapshot, err
}

// TestDisputesBehindManyCharges checks that the disputes of an intent are read, even after many charges, if an event or the
// reconciler reports a dispute.
func TestDisputesBehindManyCharges(t *testing.T) {
	t.Parallel()
	w, gateway := newWorld(t), &paged{}
	w.around = func(g app.Gateway) app.Gateway {
		gateway.Gateway = g
		return gateway
	}
	w.engine = w.serve(w.DB.App)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx)
	for name, notify := range map[string]func(p intent){
		"event": func(p intent) {
			w.event(account.ID.String(), "whsec_1", time.Now(), eventBody("evt_1", "charge.dispute.created", fmt.Sprintf(`{"id":"dp_1","payment_intent":%q}`, p.ID))).is(200)
			w.work()
		},
		"reconciler": func(p intent) {
			row := w.intent(ctx, p.ID)
			row.EverDisputed = true
			if _, err := w.intents.Refresh(ctx, account, row); err != nil {
				t.Error(err)
			}
		},
	} {
		p := w.paid(ctx, 1000)
		gateway.disputes = []domain.Dispute{disputeOf(name, domain.DisputeNeedsResponse)}
		notify(p)
		if got := w.intent(ctx, p.ID); !got.Disputed {
			t.Errorf("%s: no dispute is known after %d pages", name, gateway.pages)
		}
	}
}
