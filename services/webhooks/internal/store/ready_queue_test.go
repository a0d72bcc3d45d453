package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// A queue that contains only a later retry is ready when the retry is due, whether or not a breaker deferred first attempts.
func TestRescheduleWaitsForTheFirstDueDelivery(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Live)
	c := caller.FromContext(ctx)
	endpoint, _ := fill(t, db, c)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	now := time.Now().UTC().Truncate(time.Second)
	due := now.Add(12 * time.Hour)
	if _, err := conn.Exec(t.Context(), `insert into queue (tenant_id, livemode, endpoint_id, first, due_at, delivery_id, event_id)
		select tenant_id, livemode, endpoint_id, false, $1, id, event_id from deliveries limit 1`, due); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `insert into endpoint_queues (tenant_id, livemode, endpoint_id) values ($1, true, $2) on conflict do nothing`, c.Tenant, endpoint); err != nil {
		t.Fatal(err)
	}
	for name, deferred := range map[string]*time.Time{"no breaker": nil, "a deferral that is over": new(now.Add(-time.Minute)), "a deferral": new(now.Add(time.Minute))} {
		err := db.Worker.SystemTx(t.Context(), func(_ context.Context, tx pg.Tx) error {
			store.Reschedule(tx, []store.Schedule{{
				Key: domain.EndpointKey{Tenant: c.Tenant, Livemode: true, Endpoint: endpoint}, NotBefore: now, DeferredUntil: deferred,
			}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var ready time.Time
		if err := conn.QueryRow(t.Context(), `select ready_at from endpoint_queues where endpoint_id = $1`, endpoint).Scan(&ready); err != nil {
			t.Fatal(err)
		}
		if !ready.Equal(due) {
			t.Errorf("%s: ready at %s, want %s", name, ready, due)
		}
	}
}
