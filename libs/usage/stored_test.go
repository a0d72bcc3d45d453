package usage_test

import (
	"context"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/usage"
)

// measured is what Stored returns, and how many rows it read. An index-only scan reads no row.
type measured struct{ rows, bytes, read int64 }

func storedOf(t *testing.T, db *pgtest.DB, tenant ids.Tenant) (m measured) {
	t.Helper()
	read := func(ctx context.Context, tx pg.Tx) (int64, error) { // since the counters of the connection were last sent
		return pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `
			select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables where schemaname = 'public'`)
	}
	err := db.App.Tx(pgtest.CtxOf(t, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		before, err := read(ctx, tx)
		if err != nil {
			return err
		}
		if m.rows, m.bytes, err = usage.Stored(ctx, tx); err != nil {
			return err
		}
		after, err := read(ctx, tx)
		m.read = after - before
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// owner connects as the owner of a database, who sees all rows.
func owner(t *testing.T, db *pgtest.DB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The rows of a large tenant are counted exactly, and their size is estimated from a sample. The error of the estimate is in the documented
// bound, and few rows are read. Those of a small tenant in the same tables are exact.
func TestStoredRowsAreSampled(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	conn := owner(t, db)
	large, small := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	fill(t, db, small, caller.Live, 900)
	fill(t, db, large, caller.Live, 19_000)
	err := db.App.Tx(pgtest.CtxOf(t, large, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `set local statement_timeout = 0`); err != nil { // a busy machine needs long
			return err
		}
		// Rows in the order of their size, so that a part of them is no sample.
		_, err := tx.Exec(ctx, `insert into things (id, text) select n, repeat('x', n / 200) from generate_series(20001, 200000) n`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The server of the tests writes commits later. VACUUM marks a page as visible only if they are written, as this commit is.
	for _, sql := range []string{`set synchronous_commit = on`, `create table written ()`, `vacuum (analyze) things, parts`} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, rows := range map[ids.Tenant]int64{large: 19_000 + 19_000 + 180_000, small: 1800} {
		var bytes int64
		var variance float64 // of the estimated sum: each table has its own sample
		err := conn.QueryRow(t.Context(), `select sum(bytes)::bigint, sum(n * n * v / 2000) from (
			select sum(size) as bytes, count(*)::float as n, var_pop(size)::float as v from (
				select 1 as part, pg_column_size(t.*) as size from things t where tenant_id = $1
				union all select 2, pg_column_size(p.*) from parts p where tenant_id = $1) x group by part) y`, tenant).Scan(&bytes, &variance)
		if err != nil {
			t.Fatal(err)
		}
		got := storedOf(t, db, tenant)
		if got.rows != rows || got.read > 8000 {
			t.Errorf("%d rows, want %d; it read %d", got.rows, rows, got.read)
		}
		deviation := math.Abs(float64(got.bytes - bytes))
		if rows < 2000 && got.bytes != bytes || deviation > 6*math.Sqrt(variance) {
			t.Errorf("%d bytes, want %d with a standard error of %.0f", got.bytes, bytes, math.Sqrt(variance))
		}
		t.Logf("%d rows of %d bytes; estimated %d bytes, %.2f %% away; read %d rows", rows, bytes, got.bytes, 100*deviation/float64(bytes), got.read)
	}
}
