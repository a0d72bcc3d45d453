package app_test

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// setState records the state of the tenant of ctx, as its event does.
func (w *world) setState(ctx context.Context, status string) {
	w.t.Helper()
	err := w.db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into tenant_states (tenant_id, livemode, status, version) values (@tenant, @live, @status, 1)
			on conflict (tenant_id, livemode) do update set status = excluded.status`, pg.Args{"status": status})
		if err != nil {
			return err
		}
		return w.deliveries.Queue.TenantChanged(ctx, tx, status != "active")
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestDeliveriesOfASuspendedTenantWait(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"suspended", "closing"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			deliveriesWait(t, state)
		})
	}
}

// deliveriesWait checks that the deliveries of a tenant in a state wait, new ones and retries, without an attempt. When the tenant is
// active again, each is delivered once, at once. Other tenants are not affected.
func deliveriesWait(t *testing.T, state string) {
	t.Helper()
	w := newWorld(t)
	other := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
	const otherHook = "https://other.example/hook"
	e := w.endpoint(w.ctx, hook).ID
	w.endpoint(other, otherHook)
	w.receivers.at(hook, status(500))
	w.ingest(w.ctx, 1)
	w.drain() // the first attempt of one fails: its retry is due in a minute
	failed := len(w.receivers.got(hook))
	w.receivers.at(hook, status(200))
	w.setState(w.ctx, state)
	w.ingest(w.ctx, 2)
	w.ingest(other, 1)
	for range 5 {
		w.drain()
		w.Move(30 * time.Second)
	}
	if n := len(w.receivers.got(hook)) - failed; n != 0 {
		t.Fatalf("%d attempts while suspended", n)
	}
	if n := len(w.receivers.got(otherHook)); n != 1 {
		t.Errorf("%d deliveries to another tenant", n)
	}
	for _, d := range w.log(w.ctx, e, store.DeliveryFilter{}) {
		if d.Status != domain.Pending || len(d.Attempts) > 1 {
			t.Errorf("%+v", d)
		}
	}
	before := w.wakes.Load()
	w.setState(w.ctx, "active")
	if w.wakes.Load() == before {
		t.Error("the dispatcher was not woken")
	}
	w.drain()
	got := w.receivers.got(hook)[failed:]
	seen := map[string]int{}
	for _, d := range got {
		seen[d.Headers["Service-Event-Id"]]++
	}
	if len(got) != 3 || len(seen) != 3 {
		t.Errorf("%d deliveries of %d events after the resumption", len(got), len(seen))
	}
	for _, d := range w.log(w.ctx, e, store.DeliveryFilter{}) {
		if d.Status != domain.Succeeded {
			t.Errorf("%+v", d)
		}
	}
}
