package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
)

// backlog leaves work of one kind to a worker.
type backlog struct {
	leave func(w *world, ctx context.Context)
	run   func(w *world, ctx context.Context) error
	left  string // counts the remaining rows of a tenant
}

var backlogs = map[string]backlog{
	"intents": {
		leave: func(w *world, ctx context.Context) {
			w.gateway.After = func(context.Context, string) error { return errLost }
			w.post(ctx, w.booked(ctx, 100)).is(502)
			w.gateway.After = nil
		},
		run:  func(w *world, ctx context.Context) error { return w.completer.Run(ctx) },
		left: `select count(*) from payment_intents where status = 'creating'`,
	},
	"refunds": {
		leave: func(w *world, ctx context.Context) {
			p := w.paid(ctx, 100)
			w.gateway.After = func(context.Context, string) error { return errLost }
			w.refund(ctx, refundOf(p, "")).is(502)
			w.gateway.After = nil
		},
		run:  func(w *world, ctx context.Context) error { return w.refunder.Run(ctx) },
		left: `select count(*) from refunds where status = 'creating'`,
	},
	"cancellations": {
		leave: func(w *world, ctx context.Context) {
			b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
			w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201)
			if err := w.topicHandlers.Handle(ctx, message(ctx, w.T, "bookings", "booking.updated", b.ID.String(), 50, `{"status":"cancelled","customer_id":null}`)); err != nil {
				w.T.Fatal(err)
			}
		},
		run:  func(w *world, ctx context.Context) error { return w.canceler.Run(ctx) },
		left: `select count(*) from lost_bookings where true`,
	},
	"events": {
		leave: func(w *world, ctx context.Context) {
			p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
			account, err := w.accounts.Show(ctx)
			if err != nil {
				w.T.Fatal(err)
			}
			w.event(account.ID.String(), "whsec_1", w.now(), eventBody("evt_"+p.ID, "payment_intent.processing", fmt.Sprintf(`{"id":%q}`, p.ID))).is(200)
		},
		run:  func(w *world, ctx context.Context) error { return w.events.Run(ctx) },
		left: `select count(*) from gateway_events where due_at is not null`,
	},
}

// leftOf returns how many rows of a tenant remain.
func (w *world) leftOf(tenant ids.Tenant, b backlog) int {
	w.T.Helper()
	return w.Count(b.left + fmt.Sprintf(` and tenant_id = '%x'`, tenant.UUID()))
}

// TestHangingAccountDelaysNoOtherTenant checks that a tenant whose account at the gateway never responds, with more work than there
// are workers, delays no work of other tenants. This applies to work that waits already and to work that arrives while its calls
// hang.
func TestHangingAccountDelaysNoOtherTenant(t *testing.T) {
	t.Parallel()
	for name, b := range backlogs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dead, well := w.tenant(), w.tenant()
			for range 40 {
				b.leave(w, dead)
			}
			b.leave(w, well)
			w.ahead.Add(int64(time.Minute))
			release := make(chan struct{})
			w.gateway.Before = func(ctx context.Context, _ string) error {
				if caller.FromContext(ctx).Tenant != caller.FromContext(dead).Tenant {
					return nil
				}
				<-release
				return errLost
			}
			done := make(chan error, 1)
			go func() { done <- b.run(w, t.Context()) }()
			await(t, "the other tenant's work is done", func() bool { return w.leftOf(caller.FromContext(well).Tenant, b) == 0 })
			w.ahead.Add(int64(-time.Minute))
			b.leave(w, well)
			w.ahead.Add(int64(2 * time.Minute))
			await(t, "what has come meanwhile is done", func() bool { return w.leftOf(caller.FromContext(well).Tenant, b) == 0 })
			if n := w.leftOf(caller.FromContext(dead).Tenant, b); n != 40 {
				t.Errorf("%d rows of the hanging account are left, want 40", n)
			}
			select {
			case err := <-done:
				t.Errorf("the worker has ended before the dead account: %v", err)
			default:
			}
			close(release)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// await waits for a condition.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// TestWorkerOutlivesAPanic checks that a panic during the work on one row ends neither the worker nor the work on the other rows.
func TestWorkerOutlivesAPanic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, well := w.tenant(), w.tenant()
	backlogs["intents"].leave(w, bad)
	backlogs["intents"].leave(w, well)
	w.ahead.Add(int64(time.Minute))
	w.gateway.Before = func(ctx context.Context, _ string) error {
		if caller.FromContext(ctx).Tenant == caller.FromContext(bad).Tenant {
			panic("a fault")
		}
		return nil
	}
	w.complete()
	if n := w.leftOf(caller.FromContext(well).Tenant, backlogs["intents"]); n != 0 {
		t.Errorf("%d intents are left", n)
	}
	w.gateway.Before = nil
	w.ahead.Add(int64(time.Minute))
	w.complete()
	if n := w.leftOf(caller.FromContext(bad).Tenant, backlogs["intents"]); n != 0 {
		t.Errorf("%d intents of the other are left", n)
	}
}

// TestOpenCircuitDecidesNothing checks that a gateway with an open circuit refuses only what was never sent. An intent and a refund
// whose first response was lost stay unknown, whichever client or worker repeats the call, and are found later.
func TestOpenCircuitDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	paid := w.paid(ctx, 100)
	w.gateway.After = func(context.Context, string) error { return errLost }
	body := w.booked(ctx, 100)
	w.post(ctx, body, key("p")).is(502)
	w.refund(ctx, refundOf(paid, ""), key("r")).is(502)
	w.gateway.After = nil
	w.gateway.Before = func(context.Context, string) error { return &domain.BusyError{RetryAfter: 3 * time.Second} }
	w.ahead.Add(int64(time.Minute))
	for _, a := range []response{w.post(ctx, body, key("p")), w.refund(ctx, refundOf(paid, ""), key("r"))} {
		if a.is(502, "payment_intent_failed").Header.Get("Retry-After") != "3" {
			t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
		}
	}
	w.ahead.Add(int64(time.Minute))
	w.complete()
	w.completeRefunds()
	for name, b := range map[string]backlog{"intents": backlogs["intents"], "refunds": backlogs["refunds"]} {
		if n := w.leftOf(caller.FromContext(ctx).Tenant, b); n != 1 {
			t.Errorf("%s: %d are unknown, want 1", name, n)
		}
	}
	w.gateway.Before = nil
	w.ahead.Add(int64(2 * time.Minute))
	w.complete()
	w.completeRefunds()
	w.post(ctx, body, key("p")).is(201)
	if n := w.gateway.Created(); n != 2 {
		t.Errorf("%d intents at the gateway, want 2", n)
	}
	if got := w.refund(ctx, refundOf(paid, ""), key("r")).is(201).refund(); got.Status != "succeeded" {
		t.Errorf("%+v", got)
	}
}

// TestLateIntentsAreSynced checks that an intent or a refund that becomes visible after its request has failed is updated at that
// time. A client that copies the list by sort=updated_at, and has continued in the meantime, does not miss it.
func TestLateIntentsAreSynced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	w.connect(ctx)
	paid := w.paid(ctx, 100)
	w.gateway.After = func(context.Context, string) error { return errLost }
	w.post(ctx, w.booked(ctx, 100), key("late")).is(502)
	w.refund(ctx, refundOf(paid, ""), key("late refund")).is(502)
	w.gateway.After = nil
	other := w.paid(ctx, 100)
	w.refund(ctx, refundOf(other, "")).is(201)
	type page struct {
		Data []struct {
			ID        string    `json:"id"`
			UpdatedAt time.Time `json:"updated_at"`
		} `json:"data"`
	}
	list := func(path, query string) page {
		return apitest.Decode[page](w.do(ctx, "GET", path+"?sort=updated_at"+query, "").is(200).Response)
	}
	paths := []string{"/payment-intents", "/refunds"}
	last, seen := map[string]time.Time{}, map[string]bool{}
	for _, path := range paths {
		for _, row := range list(path, "").Data {
			last[path], seen[row.ID] = row.UpdatedAt, true
		}
	}
	w.ahead.Add(int64(2 * time.Minute))
	w.complete()
	w.completeRefunds()
	for _, path := range paths {
		fresh := 0
		for _, row := range list(path, "&updated_after="+last[path].UTC().Format(time.RFC3339Nano)).Data {
			if !seen[row.ID] {
				fresh++
			}
		}
		if fresh != 1 {
			t.Errorf("%s: %d are new, want 1", path, fresh)
		}
	}
}

// overtaken runs a worker that finds work that another process takes first. taken is that process's statement.
func (w *world) overtaken(taken string, run func(context.Context) error) {
	w.T.Helper()
	tx, err := w.Owner().Begin(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := tx.Exec(w.T.Context(), taken); err != nil {
		w.T.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run(w.T.Context()) }()
	w.Waiting("transactionid")
	if err := tx.Commit(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
	if err := <-done; err != nil {
		w.T.Error(err)
	}
}

// TestWorkersSkipWorkOfOthers checks that a worker skips what another process has just taken: it makes no call and logs no failure.
func TestWorkersSkipWorkOfOthers(t *testing.T) {
	t.Parallel()
	owe := func(w *world, ctx context.Context) {
		b := w.bookings.Add(ctx, "confirmed", 100, 100, "USD")
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 60, map[string]bool{w.paidOf(ctx, b, 100).ID: false}))
		w.lose(ctx, b, "cancelled", 2)
	}
	for name, c := range map[string]struct {
		leave func(w *world, ctx context.Context)
		taken string
		run   func(w *world, ctx context.Context) error
	}{
		"refunds":       {backlogs["refunds"].leave, `update refunds set leased_until = now() + interval '1 day'`, backlogs["refunds"].run},
		"cancellations": {backlogs["cancellations"].leave, `update lost_bookings set due_at = now() + interval '1 day'`, backlogs["cancellations"].run},
		"settlements": {owe, `update booking_settlements set due_at = now() + interval '1 day'`, func(w *world, ctx context.Context) error {
			return w.settler.Run(ctx)
		}},
		"owed refunds": {func(w *world, ctx context.Context) {
			owe(w, ctx)
			w.run(w.settler.Run)
		}, `update automatic_refunds set due_at = now() + interval '1 day'`, func(w *world, ctx context.Context) error { return w.owed.Run(ctx) }},
		"comparisons": {func(w *world, _ context.Context) {
			w.reconcile(&lister{hide: true})
		}, `update gateway_reconciliations set due_at = now() + interval '1 day'`, func(w *world, ctx context.Context) error {
			return w.reconciler(&lister{events: true, before: func(domain.Stage, string) error {
				t.Error("the gateway's list is read")
				return errLost
			}}).Run(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			c.leave(w, ctx)
			w.ahead.Add(int64(time.Minute))
			failures, requests := w.logged(), w.bookings.SettlementRequests()
			w.gateway.Before = func(_ context.Context, call string) error {
				t.Errorf("the gateway is called: %s", call)
				return errLost
			}
			w.overtaken(c.taken, func(ctx context.Context) error { return c.run(w, ctx) })
			if failures.Len() != 0 || w.bookings.SettlementRequests() != requests {
				t.Errorf("called %d times, log: %s", w.bookings.SettlementRequests()-requests, failures)
			}
		})
	}
}
