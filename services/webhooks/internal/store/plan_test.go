package store_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// stored is the number of events and deliveries. With TEST_SCALE=full it is the number for which the plans are made.
var stored = func() int {
	if os.Getenv("TEST_SCALE") == "full" {
		return 200_000
	}
	return 20_000
}()

// lastWeek is Sunday at noon, so that the newest partition with rows always has six days of them.
const lastWeek = `(date_trunc('week', now() at time zone 'utc') at time zone 'utc' - interval '12 hours')`

// fill writes events of the three weeks before lastWeek, of which 1 in 1,000 has a rare type, with their deliveries to one endpoint. On one day, none has it.
func fill(t *testing.T, db *pgtest.DB, c caller.Caller) (domain.EndpointID, string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	endpoint, object := ids.New[domain.EndpointPrefix](), ids.New[ids.CustomerPrefix]().String()
	n := fmt.Sprint(stored)
	for _, sql := range []string{
		`insert into endpoints (tenant_id, livemode, id, url, event_types, max_in_flight, max_per_second, created_at, updated_at)
			values ($1, $2, $3, 'u', '{*}', 10, 50, now(), now())`,
		`insert into endpoint_queues (tenant_id, livemode, endpoint_id) values ($1, $2, $3)`,
		`insert into events (tenant_id, livemode, id, type, object_id, body, updated_at)
			select $1, $2, uuid_v7(at), case when n % 1000 = 0 and (at at time zone 'utc')::date <> (` + lastWeek + ` at time zone 'utc')::date - 2
				then 'invoice.paid' else 'booking.updated' end,
				case when n % 1000 = 7 then '` + object + `' else 'bk_' || n end, case when $3::uuid is not null then '{}'::bytea end, at
			from generate_series(1, ` + n + `) n, lateral (select ` + lastWeek + ` - n * interval '20 days' / ` + n + `) x(at)`,
		`insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, status, updated_at)
			select $1, $2, $3, uuid_v7(updated_at), id, type, case when type = 'invoice.paid' then 'failed' else 'succeeded' end, updated_at from events`,
	} {
		if _, err := conn.Exec(t.Context(), sql, c.Tenant, c.Live(), endpoint); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
	return endpoint, object
}

// Each list, planned as the app role under row-level security, reads not much more than it returns.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	endpoint, object := fill(t, db, caller.FromContext(ctx))
	now := time.Now()
	middle := now.Add(-10 * 24 * time.Hour)
	requests := map[string]page.Request{
		"newest": {}, "next": {After: &page.Position{At: middle, ID: floor(middle)}}, "between": {CreatedAfter: &middle, CreatedBefore: new(middle.Add(24 * time.Hour))},
		"sync": {Updated: true, UpdatedAfter: &middle}, "sync on": {Updated: true, After: &page.Position{At: middle}},
	}
	for when, r := range requests {
		r.Limit = page.DefaultLimit
		for what, f := range map[string]store.EventFilter{"all": {}, "rare type": {Types: []string{"invoice.paid"}}, "object": {ObjectID: object}} {
			check(t, db, ctx, "events "+when+" "+what, r.Reader(ctx, db.App), func(ctx context.Context, tx pg.Tx) error {
				_, err := store.Events(ctx, tx, f, r, now)
				return err
			})
		}
		for what, f := range map[string]store.DeliveryFilter{"all": {}, "failed": {Status: domain.Failed}, "succeeded": {Status: domain.Succeeded}, "pending": {Status: domain.Pending}, "in flight": {Status: domain.Delivering}, "rare type": {Type: "invoice.paid"}} {
			f.Endpoint = endpoint
			check(t, db, ctx, "deliveries "+when+" "+what, r.Reader(ctx, db.App), func(ctx context.Context, tx pg.Tx) error {
				_, err := store.Deliveries(ctx, tx, f, r, now)
				return err
			})
		}
	}
	objects := []string{object}
	for n := range 99 {
		objects = append(objects, fmt.Sprintf("bk_%d", 10*n+1))
	}
	for what, after := range map[string]*ids.Event{"": nil, " next": new(ids.FromUUID[ids.EventPrefix](floor(middle)))} {
		check(t, db, ctx, "events of objects"+what, db.App.Read(ctx), func(ctx context.Context, tx pg.Tx) error {
			_, _, err := store.EventsOfObjects(ctx, tx, store.ObjectRange{Objects: objects, After: after, MaxRows: 100, MaxBytes: 1 << 20}, now)
			return err
		})
	}
	check(t, db, ctx, "stream", db.App.ReadToWatermark(ctx), func(ctx context.Context, tx pg.Tx) error {
		_, _, err := store.EventsAfter(ctx, tx, store.EventRange{Types: []string{"booking.updated"}, After: store.Cursor{At: middle}, MaxRows: 25, MaxBytes: 1 << 20})
		return err
	})
}

// The failing deliveries are found without reading the succeeded ones or all waiting ones.
func TestPlanOfFailingDeliveries(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	fill(t, db, caller.FromContext(ctx))
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, status := range []string{"succeeded", "pending"} {
		if _, err := conn.Exec(t.Context(), `update deliveries set status = $1 where status <> 'failed'`, status); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `vacuum analyze`); err != nil {
			t.Fatal(err)
		}
		check(t, db, ctx, "failing deliveries, others "+status, db.App.Read(ctx), func(ctx context.Context, tx pg.Tx) error {
			_, err := store.FailingDeliveries(ctx, tx, []string{"booking.updated", "invoice.paid"}, time.Now().Add(-domain.RecentlyFailed))
			return err
		})
	}
}

func floor(at time.Time) (id [16]byte) {
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

// check reports an error if a statement reads many more rows than it returns. Each partition can return a page, and few rows are
// read to find a rare one. The statement is planned as for q, its reader.
func check(t *testing.T, db *pgtest.DB, ctx context.Context, name string, q pg.Q, read func(context.Context, pg.Tx) error) {
	t.Helper()
	for _, mode := range pgtest.PlanModesOf(t, ctx, q) {
		plan := pgtest.Explain(t, ctx, db, mode, read)
		if most := max(400, float64(stored)/50); plan.Read() > most {
			t.Errorf("%s, %s: reads %.0f of %d rows, at most %.0f are to be\n%s", name, mode, plan.Read(), stored, most, plan)
		}
	}
}

// queued fills the queue with all deliveries of the log and opens a pool in the worker role like the service.
func queued(t *testing.T, db *pgtest.DB) *pg.DB {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{
		// The statistics are from before the endpoint's deliveries arrived: each endpoint had one.
		`alter table queue set (autovacuum_enabled = false)`,
		`insert into queue (tenant_id, livemode, endpoint_id, due_at, delivery_id, event_id)
			select gen_random_uuid(), n % 2 = 0, gen_random_uuid(), now(), uuid_v7(now()), uuid_v7(now()) from generate_series(1, 1000) n`,
		`analyze queue`,
		`insert into queue (tenant_id, livemode, endpoint_id, due_at, delivery_id, event_id)
			select tenant_id, livemode, endpoint_id, now(), id, event_id from deliveries`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	worker, err := pg.Open(t.Context(), db.WorkerURL, pg.Options{MaxConns: 1, ByIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	return worker
}

// analyze renews the statistics of a table.
func analyze(t *testing.T, db *pgtest.DB, table string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `analyze `+table); err != nil {
		t.Fatal(err)
	}
}

// A claim reads about as many rows as it claims, regardless of the size of the log and the queue.
func TestClaimReadsWhatItClaims(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	c := caller.FromContext(ctx)
	endpoint, _ := fill(t, db, c)
	const some = 10
	err := queued(t, db).SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		limits := []store.ClaimLimit{{Key: domain.EndpointKey{Tenant: c.Tenant, Livemode: true, Endpoint: endpoint}, Max: some, FirstAttempts: true}}
		due, err := store.DueDeliveries(ctx, tx, limits, time.Now())
		if err != nil || len(due) != some || due[0].Bytes != 2 {
			return fmt.Errorf("%+v, %w", due, err)
		}
		for name, read := range map[string]func(tx pg.Tx) error{
			"due":   func(tx pg.Tx) error { _, err := store.DueDeliveries(ctx, tx, limits, time.Now()); return err },
			"claim": func(tx pg.Tx) error { _, err := store.ClaimDue(ctx, tx, due, time.Now()); return err },
		} {
			plan := pgtest.NewExplained(t, tx)
			if err := read(plan); err != nil {
				return err
			}
			if plan.Read() > 5*some {
				t.Errorf("%s reads %.0f rows\n%s", name, plan.Read(), plan)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Taking wakeups reads only the queues with wakeups, by key, even if the table of wakeups is empty according to the planner's
// statistics.
func TestTakeWakeupsReadsOnlyTheirQueues(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{
		`insert into endpoints (tenant_id, livemode, id, url, event_types, max_in_flight, max_per_second, created_at, updated_at)
			select gen_random_uuid(), false, uuid_v7(now()), 'u', '{*}', 10, 50, now(), now() from generate_series(1, 2000) n`,
		`insert into endpoint_queues (tenant_id, livemode, endpoint_id) select tenant_id, livemode, id from endpoints`,
		`analyze endpoint_queues`,
		`insert into wakeups (tenant_id, livemode, endpoint_id) select tenant_id, livemode, endpoint_id from (select * from endpoint_queues limit 20) l, generate_series(1, 3)`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	worker, err := pg.Open(t.Context(), db.WorkerURL, pg.Options{MaxConns: 1, ByIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	err = worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		plan := pgtest.NewExplained(t, tx)
		rows, err := plan.Query(ctx, store.TakeWakeupsSQL, time.Now(), 1000)
		if err != nil {
			return err
		}
		rows.Close()
		if want := 60.0 + 20 + 20 + 60 + 60; plan.Read() > want { // the wakeups, their queues twice, and the wakeups again to delete them
			t.Errorf("reads %.0f rows, want at most %.0f\n%s", plan.Read(), want, plan)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Failing the deliveries of a disabled endpoint reads about as many rows as it fails, regardless of how many are queued.
func TestFailQueuedReadsWhatItFails(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	c := caller.FromContext(ctx)
	endpoint, _ := fill(t, db, c)
	worker := queued(t, db)
	const some = 100
	readsFew := func(tx pg.Tx, fail func(tx pg.Tx) (int, error)) error {
		plan := pgtest.NewExplained(t, tx)
		_, err := fail(plan)
		// Each row is found, locked and deleted, and its delivery is found and updated. At the beginning of a week, its partition
		// is so small that it can be read completely instead of its index.
		if plan.Read() > 10*some {
			t.Errorf("reads %.0f rows to fail %d\n%s", plan.Read(), some, plan)
		}
		return err
	}
	err := worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		return readsFew(tx, func(tx pg.Tx) (int, error) {
			return store.FailQueued(ctx, tx, domain.EndpointKey{Tenant: c.Tenant, Livemode: true, Endpoint: endpoint}, time.Now(), some)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	analyze(t, db, "queue") // row-level security adds conditions for which the planner needs them
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return readsFew(tx, func(tx pg.Tx) (int, error) { return store.FailTenantQueued(ctx, tx, endpoint, time.Now(), some) })
	})
	if err != nil {
		t.Fatal(err)
	}
}
