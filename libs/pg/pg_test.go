package pg_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// notes is a table under the usual policy.
var notes = fstest.MapFS{"00001_notes.sql": {Data: []byte(`-- +goose ENVSUB ON
-- +goose Up
create table notes (tenant_id uuid not null, livemode boolean not null, id int not null, body text not null, primary key (tenant_id, livemode, id));
select protect('notes');
`)}}

func insert(ctx context.Context, tx pg.Tx, id int, body string) error {
	c := caller.FromContext(ctx)
	_, err := tx.Exec(ctx, `insert into notes values ($1, $2, $3, $4)`, c.Tenant, c.Live(), id, body)
	return err
}

func bodies(t *testing.T, ctx context.Context, q pg.Q) []string {
	t.Helper()
	rows, err := q.Query(ctx, `select body from notes order by id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTxAndReadSeeOnlyTheCallersTenantAndMode(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	tenant := ids.New[ids.TenantPrefix]()
	spaces := []context.Context{
		pgtest.CtxOf(t, tenant, caller.Live), pgtest.CtxOf(t, tenant, caller.Test),
		pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Test),
	}
	for i, ctx := range spaces {
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			return insert(ctx, tx, 1, strings.Repeat("x", i+1))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, ctx := range spaces {
		want := strings.Repeat("x", i+1)
		if got := bodies(t, ctx, db.App.Read(ctx)); len(got) != 1 || got[0] != want {
			t.Errorf("space %d reads %q, want only %q", i, got, want)
		}
	}
	if err := db.App.Tx(context.Background(), func(context.Context, pg.Tx) error { return nil }); !errors.Is(err, caller.ErrNone) {
		t.Errorf("a transaction without a caller gave %v", err)
	}
}

func TestTheScopeEndsWithTheTransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	ctx := pgtest.Ctx(t, caller.Live)
	if err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, 1, "a") }); err != nil {
		t.Fatal(err)
	}
	err := db.App.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { // same pool, no settings
		if got := bodies(t, ctx, tx); len(got) != 0 {
			t.Errorf("rows %q are visible without a tenant", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A statement is planned for its values only if its reader says so, whatever the connection executed before.
func TestStatementsArePlannedForTheirValues(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	ctx := pgtest.Ctx(t, caller.Live)
	for _, q := range []struct {
		from pg.Q
		want string
	}{{db.App.ReadForValues(ctx), "force_custom_plan"}, {db.App.ReadToWatermark(ctx), "force_custom_plan"}, {db.App.Read(ctx), "auto"}} {
		mode, err := pg.One(ctx, q.from, pgx.RowTo[string], pgx.ErrNoRows, `select current_setting('plan_cache_mode')`)
		if err != nil || mode != q.want {
			t.Errorf("planned with %s, want %s: %v", mode, q.want, err)
		}
	}
}

func TestTxRollsBackOnError(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	ctx := pgtest.Ctx(t, caller.Test)
	boom := errors.New("boom")
	committed := false
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		tx.AfterCommit(func() { committed = true })
		if err := insert(ctx, tx, 1, "a"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) || committed {
		t.Fatalf("err %v, AfterCommit ran: %v", err, committed)
	}
	if got := bodies(t, ctx, db.App.Read(ctx)); len(got) != 0 {
		t.Fatalf("%q outlived the rollback", got)
	}
}

func TestTxReportsASwallowedFailure(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	ctx := pgtest.Ctx(t, caller.Test)
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_ = insert(ctx, tx, 1, "a")
		_ = insert(ctx, tx, 1, "again") // fails; the transaction is now aborted
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Fatalf("a commit that rolled back gave %v", err)
	}
}

// The statements of QueueAtCommit run with the commit. Their effect is visible after it, and their failure rolls everything back.
func TestQueueAtCommitRunsWithTheCommit(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, notes), pgtest.Ctx(t, caller.Test)
	put := func(id int, last string) error {
		return db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			tx.QueueAtCommit(last, id)
			return insert(ctx, tx, id, "first")
		})
	}
	if err := put(1, `update notes set body = 'last' where id = $1`); err != nil {
		t.Fatal(err)
	}
	if err := put(2, `update notes set id = 1 / (id - $1)`); pg.Code(err) != "22012" {
		t.Errorf("a failing last statement: %v", err)
	}
	if got := bodies(t, ctx, db.App.Read(ctx)); !slices.Equal(got, []string{"last"}) {
		t.Errorf("notes: %q", got)
	}
	alone := func(_ context.Context, tx pg.Tx) error {
		tx.QueueAtCommit(`update notes set body = 'alone'`)
		return nil
	}
	if err := db.App.Tx(ctx, alone); err != nil {
		t.Error(err)
	}
	if got := bodies(t, ctx, db.App.Read(ctx)); !slices.Equal(got, []string{"alone"}) {
		t.Errorf("notes: %q", got)
	}
}

// The error of a statement of QueueBatchAtCommit is explained by its own batch only, and rolls everything back.
func TestQueueBatchAtCommitExplainsItsErrors(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, notes), pgtest.Ctx(t, caller.Test)
	const fine, fails = `select 1`, `select 1 / 0`
	explained := errors.New("explained")
	for name, tc := range map[string]struct {
		before, first, second, after string
		want                         bool
	}{
		"its first statement":      {fine, fails, fine, fine, true},
		"its last statement":       {fine, fine, fails, fine, true},
		"a statement before it":    {fails, fine, fine, fine, false},
		"a statement after it":     {fine, fine, fine, fails, false},
		"the first of two errors":  {fine, fine, fails, fails, true},
		"an error of another part": {fails, fails, fine, fine, false},
	} {
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			b := &pgx.Batch{}
			b.Queue(tc.first)
			b.Queue(tc.second)
			tx.QueueAtCommit(tc.before)
			tx.QueueBatchAtCommit(b, func(err error) error { return errors.Join(explained, err) })
			tx.QueueAtCommit(tc.after)
			return insert(ctx, tx, 1, "lost")
		})
		if errors.Is(err, explained) != tc.want || pg.Code(err) != "22012" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := bodies(t, ctx, db.App.Read(ctx)); len(got) > 0 {
		t.Errorf("notes: %q", got)
	}
	err := db.App.Tx(ctx, func(_ context.Context, tx pg.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`insert into notes (tenant_id, livemode, id, body) select @tenant, @live, 2, 'kept'`, pg.Args{})
		tx.QueueBatchAtCommit(b, func(err error) error { return err })
		return nil
	})
	if got := bodies(t, ctx, db.App.Read(ctx)); err != nil || !slices.Equal(got, []string{"kept"}) {
		t.Errorf("notes: %q, %v", got, err)
	}
}

func TestDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	ctx := pgtest.Ctx(t, caller.Test)
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return errors.Join(insert(ctx, tx, 1, ""), insert(ctx, tx, 2, ""))
	})
	if err != nil {
		t.Fatal(err)
	}
	touch := func(ctx context.Context, tx pg.Tx, id int) error {
		_, err := tx.Exec(ctx, `update notes set body = body || 'x' where id = $1`, id)
		return err
	}
	var both sync.WaitGroup
	var barrier sync.WaitGroup
	barrier.Add(2)
	for _, order := range [][2]int{{1, 2}, {2, 1}} {
		first := true
		both.Go(func() {
			err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				if err := touch(ctx, tx, order[0]); err != nil {
					return err
				}
				if first {
					first = false
					barrier.Done()
					barrier.Wait() // each holds its first row before it locks the other's
				}
				return touch(ctx, tx, order[1])
			})
			if err != nil {
				t.Errorf("order %v: %v", order, err)
			}
		})
	}
	both.Wait()
	if got := bodies(t, ctx, db.App.Read(ctx)); got[0] != "xx" || got[1] != "xx" {
		t.Errorf("got %q, want both updates on both rows", got)
	}
}

// A transaction is repeated only after a conflict, at most three times, and only the last attempt writes.
func TestConflictsAreRetriedThreeTimes(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, notes), pgtest.Ctx(t, caller.Test)
	for code, want := range map[string]int{"40P01": 4, "40001": 4, "23505": 1} {
		runs := 0
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			runs++
			return errors.Join(insert(ctx, tx, 1, ""), &pgconn.PgError{Code: code})
		})
		if pg.Code(err) != code || runs != want {
			t.Errorf("%s: %d runs, want %d, and %v", code, runs, want, err)
		}
	}
	runs := 0
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if runs++; runs < 4 {
			return errors.Join(insert(ctx, tx, 1, "conflicts"), &pgconn.PgError{Code: "40001"})
		}
		return insert(ctx, tx, 1, "last")
	})
	if got := bodies(t, ctx, db.App.Read(ctx)); err != nil || !slices.Equal(got, []string{"last"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// The reads of a batch return only rows that the caller may see, and every failure returns the connection to the pool.
func TestReadBatch(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	one, err := pg.Open(t.Context(), db.AppURL, pg.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Close)
	mine, other := pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Test)
	for _, ctx := range []context.Context{mine, other} {
		err := one.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			return insert(ctx, tx, 1, caller.FromContext(ctx).Tenant.String())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(statements ...string) (got []string, err error) {
		b := &pgx.Batch{}
		for _, sql := range statements {
			b.Queue(sql).Query(func(rows pgx.Rows) error {
				texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
				got = append(got, texts...)
				return err
			})
		}
		err = one.ReadBatch(mine, b)
		return got, err
	}
	const bodies = `select body from notes`
	tenant := caller.FromContext(mine).Tenant.String()
	for range 3 { // on the pool's only connection
		if got, err := read(bodies, `select 'between'`, bodies); err != nil || !slices.Equal(got, []string{tenant, "between", tenant}) {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := read(bodies, `select 1 / (select 0)::text`, bodies); pg.Code(err) == "" {
			t.Fatalf("a statement that fails: %v", err)
		}
	}
}
