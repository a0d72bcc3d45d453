// Package erasuretest checks that the erasure of a tenant covers the whole schema of a service.
package erasuretest

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// maxSteps is more than the erasure of the rows of a test takes.
const maxSteps = 20

// Check fills every table that has a column tenant_id with rows of two tenants in two modes, erases one tenant, and checks that no row of
// any table contains its id, in any form, except its mark, and that every row of the other tenant is left. seed adds at least one row of
// a tenant and mode to each of these tables, so the test of a service fails for a new table until it has one. retained are the tables whose
// rows an erasure does not delete.
func Check(t *testing.T, db *pgtest.DB, seed func(tenant ids.Tenant, mode caller.Mode), retained ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	gone, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	for _, tenant := range []ids.Tenant{gone, other} {
		seed(tenant, caller.Live)
		seed(tenant, caller.Test)
	}
	before := rows(t, conn, retained)
	for _, table := range names(t, conn, `select distinct c.oid::regclass::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace and c.relname <> 'tenant_erasures'`) {
		for _, tenant := range []ids.Tenant{gone, other} {
			if n := count(t, conn, `select count(*) from `+table+` where tenant_id = $1`, tenant.UUID()); n == 0 {
				t.Errorf("%s: the test adds no row", table)
			}
		}
	}
	e := &erasure.Eraser{Worker: db.Worker}
	first := finish(t, e, gone)
	for _, table := range names(t, conn, `select c.oid::regclass::text from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`) {
		n := mentions(t, conn, table, gone)
		if n != 0 && table != "tenant_erasures" && !slices.Contains(retained, table) || n == 0 && slices.Contains(retained, table) {
			t.Errorf("%s: %d rows contain the id of the erased tenant", table, n)
		}
	}
	if n := mentions(t, conn, "tenant_erasures", gone); n != 1 {
		t.Errorf("%d marks", n)
	}
	if n, want := first.Deleted, before[gone]; n != want {
		t.Errorf("reports %d deleted rows, want %d", n, want)
	}
	if after := rows(t, conn, retained); after[other] != before[other] || after[gone] != 0 {
		t.Errorf("the other tenant has %d rows, want %d; the erased one %d", after[other], before[other], after[gone])
	}
	if again := finish(t, e, gone); again != first {
		t.Errorf("a repetition changes %+v to %+v", first, again)
	}
	refused(t, db, gone)
}

// refused checks that a transaction of an erased tenant adds no row.
func refused(t *testing.T, db *pgtest.DB, tenant ids.Tenant) {
	t.Helper()
	err := db.App.Tx(pgtest.CtxOf(t, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into inbox (tenant_id, livemode, consumer, event_id, expires_at) values (@tenant, @live, 'c', gen_random_uuid(), now())`, pg.Args{})
		return err
	})
	if pg.Code(err) != "42501" {
		t.Errorf("a row of an erased tenant: %v", err)
	}
}

func finish(t *testing.T, e *erasure.Eraser, tenant ids.Tenant) erasure.Progress {
	t.Helper()
	for range maxSteps {
		p, err := e.Step(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		if p.Erased {
			return p
		}
	}
	t.Fatal("the erasure does not end")
	return erasure.Progress{}
}

// rows counts the rows of each tenant in all tables but some.
func rows(t *testing.T, conn *pgx.Conn, but []string) map[ids.Tenant]int64 {
	t.Helper()
	out := map[ids.Tenant]int64{}
	for _, table := range names(t, conn, `select c.oid::regclass::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> 'tenant_erasures'`) {
		if slices.Contains(but, table) {
			continue
		}
		found, err := conn.Query(t.Context(), `select tenant_id, count(*) from only `+table+` where tenant_id is not null group by 1`)
		if err != nil {
			t.Fatal(err)
		}
		var id [16]byte
		var n int64
		if _, err := pgx.ForEachRow(found, []any{&id, &n}, func() error {
			out[ids.FromUUID[ids.TenantPrefix](id)] += n
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// mentions counts the rows of a table that contain the id of a tenant as a uuid, as text or as bytes.
func mentions(t *testing.T, conn *pgx.Conn, table string, tenant ids.Tenant) int64 {
	t.Helper()
	return pgtest.Containing(t, conn, table, pgtest.Forms(tenant)...)
}

func count(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func names(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	found, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}
