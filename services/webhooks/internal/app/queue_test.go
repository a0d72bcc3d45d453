package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// Each use case that queues a delivery wakes the dispatcher after its commit, and the next pass attempts the delivery, although no
// time passed and the queue was idle.
func TestQueuedDeliveriesAreAttemptedAtOnce(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]func(w *world, e domain.EndpointID, delivered domain.DeliveryID) error{
		"an event": func(w *world, _ domain.EndpointID, _ domain.DeliveryID) error {
			return w.intake.Ingest(w.ctx, []domain.Event{w.event(w.ctx)})
		},
		"a test": func(w *world, e domain.EndpointID, _ domain.DeliveryID) error {
			return w.test(e, "")
		},
		"a retry": func(w *world, e domain.EndpointID, delivered domain.DeliveryID) error {
			return w.retry(e, delivered)
		},
		"a resent event": func(w *world, e domain.EndpointID, _ domain.DeliveryID) error {
			return w.resend(w.log(w.ctx, e, store.DeliveryFilter{})[0].EventID, e)
		},
		"a replay": func(w *world, e domain.EndpointID, _ domain.DeliveryID) error {
			_, err := w.replay(e)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e := w.endpoint(w.ctx, hook).ID
			w.ingest(w.ctx, 1)
			w.drain()
			w.Move(time.Minute)
			w.drain() // the pass after the claim's time, which finds nothing
			delivered := w.log(w.ctx, e, store.DeliveryFilter{})[0].ID
			if at := w.texts(`select ready_at::text from endpoint_queues`); at[0] != "infinity" {
				t.Fatalf("the queue is ready at %s", at)
			}
			before := w.wakes.Load()
			if err := queue(w, e, delivered); err != nil {
				t.Fatal(err)
			}
			if got := w.wakes.Load() - before; got != 1 {
				t.Errorf("the dispatcher was woken %d times", got)
			}
			if n := w.drain(); n != 1 {
				t.Errorf("%d attempts at once", n)
			}
		})
	}
}

// A new endpoint receives a test event as soon as the dispatcher is woken.
func TestANewEndpointIsTestedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.Queue = &store.Queue{Wake: w.dispatcher.Wake}
	e := w.endpoint(w.ctx, hook)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.dispatcher.Run(ctx) }()
	if err := w.test(e.ID, "booking.created"); err != nil {
		t.Fatal(err)
	}
	await(t, "the test", func() bool { return len(w.receivers.got(hook)) == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := w.receivers.got(hook)[0].Headers["Service-Event-Type"]; got != "booking.created" {
		t.Errorf("a %s came", got)
	}
}

// abandon claims the due deliveries like a process that is then killed, and moves the clock until the claims have expired.
func (w *world) abandon(want int) {
	w.t.Helper()
	if _, n, err := w.dispatcher.Begin(w.t.Context()); err != nil || n != want {
		w.t.Fatal(n, err)
	}
	w.Move(30 * time.Second)
}

// The deliveries that a killed process had claimed fail when their endpoint is disabled, and the queue becomes idle.
func TestADisabledEndpointWithAnExpiredClaim(t *testing.T) {
	t.Parallel()
	for name, disable := range map[string]func(w *world, e domain.EndpointID){
		"the claim expires first": func(w *world, e domain.EndpointID) {
			w.abandon(2)
			w.setStatus(e, domain.Disabled)
		},
		"the endpoint is disabled first": func(w *world, e domain.EndpointID) {
			if _, n, err := w.dispatcher.Begin(w.t.Context()); err != nil || n != 2 {
				w.t.Fatal(n, err)
			}
			w.setStatus(e, domain.Disabled)
			w.step()
			if on := w.log(w.ctx, e, store.DeliveryFilter{Status: domain.Delivering}); len(on) != 2 {
				w.t.Errorf("%d are in flight", len(on))
			}
			w.Move(30 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e := w.endpoint(w.ctx, hook, limits(2, domain.DefaultPerSecond))
			w.ingest(w.ctx, 5)
			disable(w, e.ID)
			w.step()
			if failed := w.log(w.ctx, e.ID, store.DeliveryFilter{Status: domain.Failed}); len(failed) != 5 {
				t.Errorf("%d of 5 failed", len(failed))
			}
			if left := w.texts(`select delivery_id::text from queue`); len(left) != 0 {
				t.Errorf("%d are still queued", len(left))
			}
			if at := w.texts(`select ready_at::text from endpoint_queues`); at[0] != "infinity" {
				t.Errorf("the queue is ready at %s", at)
			}
		})
	}
}

// A retry of a delivery whose claim has expired makes one attempt, not two.
func TestARetryReplacesAnExpiredClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Move(-time.Minute) // the status delivering depends on the database's clock
	e := w.endpoint(w.ctx, hook)
	w.ingest(w.ctx, 1)
	w.abandon(1)
	d := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0]
	if err := w.retry(e.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	if n := w.drain(); n != 1 {
		t.Errorf("%d attempts", n)
	}
	if d = w.log(w.ctx, e.ID, store.DeliveryFilter{})[0]; d.Status != domain.Succeeded || len(d.Attempts) != 1 {
		t.Errorf("%s after %d attempts", d.Status, len(d.Attempts))
	}
}

// An endpoint with many waiting deliveries rejects a replay that exceeds the limit, but accepts new events.
func TestReplayIntoAFullQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var list []domain.Event
	for i := range 9 {
		e := w.event(w.ctx)
		if i < 4 {
			e.Type = "customer.updated"
		}
		list = append(list, e)
	}
	if err := w.intake.Ingest(w.ctx, list); err != nil {
		t.Fatal(err)
	}
	e := w.endpoint(w.ctx, hook)
	w.exec(`insert into queue (tenant_id, livemode, endpoint_id, due_at, delivery_id, event_id)
		select l.tenant_id, l.livemode, l.endpoint_id, 'infinity', uuid_v7(now()), uuid_v7(now()) from endpoint_queues l, generate_series(1, $1) n`, domain.MaxPending-8)
	replay := func(types ...string) error {
		_, err := w.replay(e.ID, types...)
		return err
	}
	full := func(err error) bool {
		var refused *apperr.Error
		return errors.As(err, &refused) && strings.Contains(fmt.Sprint(refused.Fields), "endpoint_id")
	}
	if err := replay(); !full(err) {
		t.Errorf("a replay of nine where eight are allowed: %v", err)
	}
	for range 2 {
		if err := replay("customer.updated"); err != nil {
			t.Errorf("a replay of four that are allowed: %v", err)
		}
	}
	if err := replay("customer.updated"); !full(err) {
		t.Errorf("a replay of four above the limit: %v", err)
	}
	if err := replay("booking.created"); err != nil {
		t.Errorf("a replay of none: %v", err)
	}
	w.ingest(w.ctx, 3)
	if n := w.texts(`select count(*)::text from queue`)[0]; n != fmt.Sprint(domain.MaxPending+3) {
		t.Errorf("%s are queued", n)
	}
}
