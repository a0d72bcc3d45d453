package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// instants returns the first and the last instant of the day before yesterday, in UTC, and those around them.
func instants() (from time.Time, list []time.Time) {
	from = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2)
	to := from.AddDate(0, 0, 1)
	return from, []time.Time{from.Add(-time.Millisecond), from, to.Add(-time.Millisecond), to}
}

// Events count on the day on which the log recorded them, also those that are older, and deliveries on the day of their creation, with
// any status. Samples do not count. Each tenant and mode has its own.
func TestUsageOfADay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	from, list := instants()
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	for i, at := range []struct {
		tenant ids.Tenant
		live   bool
	}{{tenants[0], true}, {tenants[0], false}, {tenants[1], true}, {tenants[1], false}} {
		for _, instant := range list {
			exec(`insert into events (tenant_id, livemode, id, type, object_id, body, updated_at, sample)
				select $1, $2, uuid_v7($3::timestamptz - interval '3 days'), 't', 'o', '', $3, n = 0 from generate_series(0, $4) n`, at.tenant, at.live, instant, i+1)
			exec(`insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, status, updated_at)
				select $1, $2, gen_random_uuid(), uuid_v7($3), gen_random_uuid(), 't', case when n % 2 = 0 then 'failed' else 'pending' end, now()
				from generate_series(1, $4) n`, at.tenant, at.live, instant, 2*(i+1))
		}
	}
	for i, ctx := range []context.Context{
		pgtest.CtxOf(t, tenants[0], caller.Live), pgtest.CtxOf(t, tenants[0], caller.Test), pgtest.CtxOf(t, tenants[1], caller.Live), pgtest.CtxOf(t, tenants[1], caller.Test),
	} {
		events, err := store.EventsRecorded(ctx, db.App.Read(ctx), from, from.AddDate(0, 0, 1))
		if want := int64(2 * (i + 1)); err != nil || events != want {
			t.Errorf("%d events, want %d, %v", events, want, err)
		}
		deliveries, err := store.DeliveriesCreated(ctx, db.App.Read(ctx), from, from.AddDate(0, 0, 1))
		if want := int64(4 * (i + 1)); err != nil || deliveries != want {
			t.Errorf("%d deliveries, want %d, %v", deliveries, want, err)
		}
	}
}

// The events of a day are read by their index, and deliveries by the keys of one or two weeks.
func TestPlansOfUsage(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	fill(t, db, caller.FromContext(ctx))
	from := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -8)
	for name, read := range map[string]func(ctx context.Context, tx pg.Tx) error{
		"events_": func(ctx context.Context, tx pg.Tx) error {
			_, err := store.EventsRecorded(ctx, tx, from, from.AddDate(0, 0, 1))
			return err
		},
		"deliveries_": func(ctx context.Context, tx pg.Tx) error {
			_, err := store.DeliveriesCreated(ctx, tx, from, from.AddDate(0, 0, 1))
			return err
		},
	} {
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, read)
		if strings.Contains(plan.String(), "Seq Scan") || plan.Read() > float64(stored)/2 {
			t.Errorf("%s: reads %.0f of %d rows\n%s", name, plan.Read(), stored, plan)
		}
	}
}

// Pending deliveries are the background work of a tenant, since the creation of the oldest one.
func TestWaitingDeliveries(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into queue (endpoint_id, due_at, delivery_id, event_id) select gen_random_uuid(), now(), uuid_v7($1), gen_random_uuid()`, at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := pg.Many(ctx, db.App.Read(ctx), pgx.RowTo[time.Time], store.Waiting[0].SQL, pg.Args{})
	if err != nil || len(found) != 1 || !found[0].Equal(at) {
		t.Errorf("%v, want %v, %v", found, at, err)
	}
}
