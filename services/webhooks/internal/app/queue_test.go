package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// Whatever queues a delivery wakes the dispatcher after its commit, and the next turn attempts it, though no time
// has passed and the lane was at rest.
func TestWhatIsQueuedGoesAtOnce(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]func(w *world, e domain.EndpointID, ended domain.DeliveryID) error{
		"an event": func(w *world, _ domain.EndpointID, _ domain.DeliveryID) error {
			return w.intake.Ingest(w.ctx, []domain.Event{w.event(w.ctx)})
		},
		"a test": func(w *world, e domain.EndpointID, _ domain.DeliveryID) error {
			_, err := w.endpoints.Test(w.ctx, e, "", httpx.Match{})
			return err
		},
		"a retry": func(w *world, e domain.EndpointID, ended domain.DeliveryID) error {
			_, err := w.deliveries.Retry(w.ctx, e, ended)
			return err
		},
		"a replay": func(w *world, e domain.EndpointID, _ domain.DeliveryID) error {
			_, err := w.deliveries.Replay(w.ctx, app.Replay{Endpoint: e.String(), From: w.Now().Add(-time.Hour), To: w.Now().Add(time.Hour)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e := endpointID(t, w.endpoint(w.ctx, hook).Id)
			w.happen(w.ctx, 1)
			w.settle()
			w.Move(time.Minute)
			w.settle() // a look after the claim's time, and then it rests
			ended := w.log(w.ctx, e.String(), store.DeliveryFilter{})[0].ID
			if at := w.texts(`select ready_at::text from lanes`); at[0] != "infinity" {
				t.Fatalf("the lane is ready at %s", at)
			}
			before := w.wakes.Load()
			if err := queue(w, e, ended); err != nil {
				t.Fatal(err)
			}
			if got := w.wakes.Load() - before; got != 1 {
				t.Errorf("the dispatcher was woken %d times", got)
			}
			if n := w.settle(); n != 1 {
				t.Errorf("%d attempts at once", n)
			}
		})
	}
}

// The first thing that a fresh endpoint gets is a test, in the time that a wake-up takes.
func TestAFreshEndpointIsTestedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoints.Queue = &store.Queue{Wake: w.dispatcher.Wake}
	e := w.endpoint(w.ctx, hook)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.dispatcher.Run(ctx) }()
	if _, err := w.endpoints.Test(w.ctx, endpointID(t, e.Id), "booking.created", httpx.Match{}); err != nil {
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

// abandon lets a process claim what is due and die: nobody ends its claims, which have run out when it returns.
func (w *world) abandon(want int) {
	w.t.Helper()
	if _, n, err := w.dispatcher.Begin(w.t.Context()); err != nil || n != want {
		w.t.Fatal(n, err)
	}
	w.Move(30 * time.Second)
}

// What a dead process had claimed of an endpoint that is disabled then fails as the rest does, whoever fails it, and
// the lane comes to rest.
func TestADisabledEndpointWithADeadClaim(t *testing.T) {
	t.Parallel()
	for name, disable := range map[string]func(w *world, e string){
		"the claim ends first": func(w *world, e string) {
			w.abandon(2)
			w.update(w.ctx, e, app.EndpointChange{Status: new(domain.Disabled)})
		},
		"it is disabled first": func(w *world, e string) {
			if _, n, err := w.dispatcher.Begin(w.t.Context()); err != nil || n != 2 {
				w.t.Fatal(n, err)
			}
			w.update(w.ctx, e, app.EndpointChange{Status: new(domain.Disabled)})
			w.step()
			if on := w.log(w.ctx, e, store.DeliveryFilter{Status: domain.Delivering}); len(on) != 2 {
				w.t.Errorf("%d are left to their process", len(on))
			}
			w.Move(30 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e := w.endpoint(w.ctx, hook, func(ch *app.EndpointChange) { ch.MaxInFlight = new(2) })
			w.happen(w.ctx, 5)
			disable(w, e.Id)
			w.step()
			if failed := w.log(w.ctx, e.Id, store.DeliveryFilter{Status: domain.Failed}); len(failed) != 5 {
				t.Errorf("%d of 5 failed", len(failed))
			}
			if left := w.texts(`select delivery_id::text from queue`); len(left) != 0 {
				t.Errorf("%d are still queued", len(left))
			}
			if at := w.texts(`select ready_at::text from lanes`); at[0] != "infinity" {
				t.Errorf("the lane is ready at %s", at)
			}
		})
	}
}

// A retry of what a dead process had claimed is one attempt, not two.
func TestARetryTakesADeadClaimOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Move(-time.Minute) // what is shown as delivering goes by the database's clock
	e := w.endpoint(w.ctx, hook)
	w.happen(w.ctx, 1)
	w.abandon(1)
	d := w.log(w.ctx, e.Id, store.DeliveryFilter{})[0]
	if _, err := w.deliveries.Retry(w.ctx, endpointID(t, e.Id), d.ID); err != nil {
		t.Fatal(err)
	}
	if n := w.settle(); n != 1 {
		t.Errorf("%d attempts", n)
	}
	if d = w.log(w.ctx, e.Id, store.DeliveryFilter{})[0]; d.Status != domain.Succeeded || len(d.Attempts) != 1 {
		t.Errorf("%s after %d attempts", d.Status, len(d.Attempts))
	}
}

// An endpoint for which much waits takes no replay that goes over its bound, and live events all the same.
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
		select l.tenant_id, l.livemode, l.endpoint_id, 'infinity', uuid_v7(now()), uuid_v7(now()) from lanes l, generate_series(1, $1) n`, domain.MaxPending-8)
	replay := func(types ...string) error {
		_, err := w.deliveries.Replay(w.ctx, app.Replay{Endpoint: e.Id, Types: types, From: w.Now().Add(-time.Hour), To: w.Now().Add(time.Hour)})
		return err
	}
	full := func(err error) bool {
		var refused *apperr.Error
		return errors.As(err, &refused) && strings.Contains(fmt.Sprint(refused.Fields), "endpoint_id")
	}
	if err := replay(); !full(err) {
		t.Errorf("nine where eight have room: %v", err)
	}
	for range 2 {
		if err := replay("customer.updated"); err != nil {
			t.Errorf("four where there is room: %v", err)
		}
	}
	if err := replay("customer.updated"); !full(err) {
		t.Errorf("four where there is no room: %v", err)
	}
	if err := replay("booking.created"); err != nil {
		t.Errorf("none, which needs no room: %v", err)
	}
	w.happen(w.ctx, 3)
	if n := w.texts(`select count(*)::text from queue`)[0]; n != fmt.Sprint(domain.MaxPending+3) {
		t.Errorf("%s are queued", n)
	}
}
