package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/migrations"
)

// The previous version reads and writes endpoint_queues and wakeups under their old names, in the roles of requests and of the
// dispatcher. Each tenant accesses only its own rows.
func TestPreviousVersionConcurrently(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Live)
	endpoint, _ := fill(t, db, caller.FromContext(ctx))
	run := func(do func(ctx context.Context, tx pg.Tx) error) {
		t.Helper()
		if err := db.App.Tx(ctx, do); err != nil {
			t.Fatal(err)
		}
	}
	dispatch := func(do func(ctx context.Context, tx pg.Tx) error) {
		t.Helper()
		if err := db.Worker.SystemTx(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	run(func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into lanes (tenant_id, livemode, endpoint_id) values (@tenant, @live, @id) on conflict do nothing`, pg.Args{"id": endpoint})
		return err
	})
	run(func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `with new as (select @tenant::uuid as tenant_id, @live::boolean as livemode, @id::uuid as endpoint_id)
			insert into signals (tenant_id, livemode, endpoint_id) select distinct tenant_id, livemode, endpoint_id from new`, pg.Args{"id": endpoint})
		return err
	})
	var locked int
	dispatch(func(ctx context.Context, tx pg.Tx) (err error) {
		if _, err = tx.Exec(ctx, `
			with oldest as materialized (select tenant_id, livemode, endpoint_id, id from signals order by id limit $2),
			woken as (select tenant_id, livemode, endpoint_id, array_agg(id) as wakeups from oldest group by 1, 2, 3),
			locked as materialized (
				select l.*, w.wakeups from woken w cross join lateral (
					select l.tenant_id, l.livemode, l.endpoint_id from lanes l
					where (l.tenant_id, l.livemode, l.endpoint_id) = (w.tenant_id, w.livemode, w.endpoint_id)
					for no key update skip locked) l
			),
			deleted as (delete from signals where id = any(array(select unnest(k.wakeups) from locked k)))
			update lanes l set ready_at = least(l.ready_at, $1) from locked k
			where (l.tenant_id, l.livemode, l.endpoint_id) = (k.tenant_id, k.livemode, k.endpoint_id)`, now, 1000); err != nil {
			return err
		}
		rows, err := pg.Many(ctx, tx, pgx.RowTo[bool], `select crowded from lanes where ready_at <= $1 order by ready_at limit $2 for no key update skip locked`, now, 10)
		locked = len(rows)
		return err
	})
	if locked != 1 {
		t.Errorf("%d queues are ready, want 1", locked)
	}
	dispatch(func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `update lanes l set begun_at = $2, begun = $3, crowded = $4, ready_at = $5 where l.endpoint_id = $1`,
			endpoint, []time.Time{now}, []int32{1}, true, now)
		return err
	})
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var throttled bool
	var wakeups int
	if err := conn.QueryRow(t.Context(), `select throttled, (select count(*) from wakeups) from endpoint_queues where endpoint_id = $1`, endpoint).Scan(&throttled, &wakeups); err != nil {
		t.Fatal(err)
	}
	if !throttled || wakeups != 0 {
		t.Errorf("throttled: %v, %d wakeups are left", throttled, wakeups)
	}
	other := pgtest.Ctx(t, caller.Live)
	err = db.App.Tx(other, func(ctx context.Context, tx pg.Tx) error {
		rows, err := pg.Many(ctx, tx, pgx.RowTo[bool], `select crowded from lanes union all select true from signals`)
		if len(rows) != 0 {
			t.Errorf("another tenant sees %d rows", len(rows))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
