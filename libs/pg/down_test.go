package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

func TestDownDistinguishesADeadServerFromAnError(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, nil), pgtest.Ctx(t, caller.Test)
	in := func(ctx context.Context, sql string) error {
		return db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
	}
	_, refused := pgx.Connect(t.Context(), "postgres://unknown@127.0.0.1:1/none")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	late, stop := context.WithTimeout(ctx, 50e6)
	defer stop()
	for name, tc := range map[string]struct {
		err  error
		down bool
	}{
		"terminated":     {in(ctx, `select pg_terminate_backend(pg_backend_pid())`), true},
		"refused":        {refused, true},
		"wrong table":    {in(ctx, `select from nowhere`), false},
		"plain":          {errors.New("plain"), false},
		"client is gone": {in(ended, `select 1`), false},
		"too slow":       {in(late, `select pg_sleep(5)`), false},
	} {
		if tc.err == nil || pg.Down(tc.err) != tc.down {
			t.Errorf("%s: down is not %v: %v", name, tc.down, tc.err)
		}
	}
}

// An error that a retry can resolve is unavailable: a row that stays locked, a statement that takes too long, a pool without a free
// connection. A request that its own client canceled is not.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, notes), pgtest.Ctx(t, caller.Test)
	open := func(opt pg.Options) *pg.DB {
		t.Helper()
		pool, err := pg.Open(t.Context(), db.AppURL, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	const short = 50 * time.Millisecond
	run := func(pool *pg.DB, ctx context.Context, sql string) error {
		return pool.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
	}
	read := func(pool *pg.DB, ctx context.Context) error {
		rows, err := pool.Read(ctx).Query(ctx, `select 1`)
		if err == nil {
			rows.Close()
		}
		return err
	}
	slowRead := func(pool *pg.DB) error {
		rows, err := pool.Read(ctx).Query(ctx, `select pg_sleep(60)::text`)
		if err == nil {
			_, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	}
	batch := func(pool *pg.DB, ctx context.Context) error {
		return pool.ReadBatch(ctx, &pgx.Batch{})
	}
	slow, full := open(pg.Options{StatementTimeout: short}), open(pg.Options{MaxConns: 1, AcquireTimeout: short})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	late, stop := context.WithTimeout(ctx, short)
	defer stop()
	verdicts := map[string]error{
		"slow statement": run(slow, ctx, `select pg_sleep(60)`),
		"slow read":      slowRead(slow),
	}
	wrong := map[string]error{
		"no table": run(slow, ctx, `select from nowhere`), "plain": errors.New("plain"),
		"client is gone": run(slow, ended, `select 1`), "deadline": run(open(pg.Options{}), late, `select pg_sleep(60)`),
	}
	if err := run(db.App, ctx, `insert into notes select nullif(current_setting('app.tenant_id'), '')::uuid, false, 1, ''`); err != nil {
		t.Fatal(err)
	}
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `select from notes for update`)
		verdicts["locked row"] = run(open(pg.Options{LockTimeout: short}), ctx, `update notes set body = ''`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = full.Tx(ctx, func(ctx context.Context, _ pg.Tx) error {
		verdicts["no connection to write"] = run(full, ctx, `select 1`)
		verdicts["no connection to read"] = read(full, ctx)
		verdicts["no connection for a batch"] = batch(full, ctx)
		wrong["gone while waiting"] = read(full, ended)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var says interface{ Unavailable() bool } // as httpx checks
	for name, err := range verdicts {
		if err == nil || !pg.Unavailable(err) || !errors.As(err, &says) || !says.Unavailable() {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range wrong {
		if err == nil || pg.Unavailable(err) || errors.As(err, &says) {
			t.Errorf("%s is unavailable: %v", name, err)
		}
	}
}

// Requests have time-outs below the gateway's 10 s, in every pool. Background work has none.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, nil), pgtest.Ctx(t, caller.Test)
	for want, opt := range map[string]pg.Options{
		"5s 8s":     {},
		"1s 1500ms": {LockTimeout: time.Second, StatementTimeout: 1500 * time.Millisecond},
		"5s 0":      {Background: true, StatementTimeout: time.Second},
	} {
		pool, err := pg.Open(t.Context(), db.AppURL, opt)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		rows, err := pool.Read(ctx).Query(ctx, `select current_setting('lock_timeout') || ' ' || current_setting('statement_timeout')`)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string]); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
