package pgtest

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Row is one row for Isolation: its table, the columns except tenant and mode, and their values in SQL. A row must follow the rows
// that it references.
type Row [3]string

// common are rows of the tables that each service has.
var common = []Row{
	{"idempotency_keys", "credential_id, key, fingerprint, expires_at", "'c', gen_random_uuid()::text, '', now()"},
	{"outbox", "id, topic, aggregate_id, hash, message", "gen_random_uuid(), 't', 'a', 0, ''"},
	{"inbox", "consumer, event_id, expires_at", "'c', gen_random_uuid(), now()"},
}

// Isolation checks a service's schema. Each table must have forced row-level security. Its key, and each index that workers does
// not name, must begin with tenant and mode. Partitions must be accessible only through their table. The
// owner must see all rows of each table. Then two tenants in two modes
// write one row into each table. None of them can read, change, take over or add a row of another. own contains one row for each
// table of the service.
func Isolation(t *testing.T, migrations fs.FS, own []Row, workers ...string) {
	t.Helper()
	db := New(t, migrations)
	rows := append(slices.Clone(own), common...)
	protected(t, db, rows, append(workers, "outbox_order", "idempotency_keys_expiry", "inbox_expiry"))
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	var spaces []space
	for _, tenant := range tenants {
		spaces = append(spaces, space{tenant, caller.Live}, space{tenant, caller.Test})
	}
	for _, me := range spaces {
		Insert(t, db, own, me.tenant, me.mode)
	}
	for _, row := range rows {
		for _, me := range spaces {
			me.isIsolated(t, db.App, row, spaces)
		}
		if n := unscoped(t, db.App, row[0]); n != 0 {
			t.Errorf("%s: %d rows without a tenant", row[0], n)
		}
	}
}

// Insert adds the rows, and one row to each table that each service has, as a tenant in a mode.
func Insert(t *testing.T, db *DB, rows []Row, tenant ids.Tenant, mode caller.Mode) {
	t.Helper()
	me := space{tenant, mode}
	for _, row := range append(slices.Clone(rows), common...) {
		if _, err := me.run(t, db.App, row.insert(me)); err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
	}
}

type space struct {
	tenant ids.Tenant
	mode   caller.Mode
}

func (s space) run(t *testing.T, db *pg.DB, sql string) (n int64, err error) {
	err = db.Tx(CtxOf(t, s.tenant, s.mode), func(ctx context.Context, tx pg.Tx) error {
		tag, err := tx.Exec(ctx, sql)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

func (r Row) insert(s space) string {
	return fmt.Sprintf(`insert into %s (tenant_id, livemode, %s) values ('%x', %v, %s)`, r[0], r[1], s.tenant.UUID(), s.mode == caller.Live, r[2])
}

// isIsolated tries every statement on the rows of others.
func (s space) isIsolated(t *testing.T, db *pg.DB, row Row, spaces []space) {
	t.Helper()
	for _, other := range spaces {
		if other == s {
			continue
		}
		of := fmt.Sprintf(`where tenant_id = '%x' and livemode = %v`, other.tenant.UUID(), other.mode == caller.Live)
		for _, sql := range []string{
			`select from ` + row[0] + ` ` + of, `delete from ` + row[0] + ` ` + of, `update ` + row[0] + ` set livemode = livemode ` + of,
		} {
			if n, err := s.run(t, db, sql); err != nil && pg.Code(err) != "42501" || n != 0 { // a table may be append only
				t.Errorf("%s: %d rows, %v", sql, n, err)
			}
		}
		move := fmt.Sprintf(`update %s set tenant_id = '%x', livemode = %v`, row[0], other.tenant.UUID(), other.mode == caller.Live)
		for _, sql := range []string{row.insert(other), move} {
			if _, err := s.run(t, db, sql); pg.Code(err) != "42501" {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	if n, err := s.run(t, db, `select from `+row[0]); err != nil || n != 1 {
		t.Errorf("%s: sees %d rows, %v", row[0], n, err)
	}
}

// unscoped counts the rows that a connection sees without a tenant.
func unscoped(t *testing.T, db *pg.DB, table string) (n int64) {
	t.Helper()
	err := db.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `select from `+table)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// table is a table of the schema as protected reads it.
type table struct {
	Name      string
	Partition bool
	Granted   bool // to a role other than its owner
	Safe      bool
	Leads     []string
}

func protected(t *testing.T, db *DB, rows []Row, workers []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	found, err := conn.Query(t.Context(), `
		select c.relname::text as name, c.relispartition as partition, coalesce(cardinality(c.relacl), 1) > 1 as granted,
		       c.relrowsecurity and c.relforcerowsecurity and exists (select from pg_policy p where p.polrelid = c.oid
		           and pg_get_expr(p.polqual, p.polrelid) like '%tenant_id%livemode%') as safe,
		       coalesce((select array_agg(a.attname::text order by k.n) from pg_index i, unnest(i.indkey::int2[]) with ordinality k(att, n), pg_attribute a
		        where i.indrelid = c.oid and i.indisprimary and a.attrelid = c.oid and a.attnum = k.att and k.n <= 2), '{}') as leads
		from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and c.relname not in ('schema_common', 'schema_service', 'installation', 'outbox_partitions', 'tenant_erasures')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowToStructByName[table])
	if err != nil {
		t.Fatal(err)
	}
	for _, tb := range tables {
		known := slices.ContainsFunc(rows, func(r Row) bool { return r[0] == tb.Name })
		switch {
		case tb.Partition && tb.Granted:
			t.Errorf("%s: a partition is open on its own", tb.Name)
		case tb.Partition:
		case !known:
			t.Errorf("%s: the test has no row for it", tb.Name)
		case !tb.Safe || !slices.Equal(tb.Leads, []string{"tenant_id", "livemode"}):
			t.Errorf("%+v: want forced row-level security and a key led by tenant and mode", tb)
		}
	}
	if err := pg.CheckOwner(t.Context(), conn); err != nil {
		t.Error(err)
	}
	loose, err := conn.Query(t.Context(), `select i.indexrelid::regclass::text from pg_index i
		join pg_class c on c.oid = i.indrelid and c.relnamespace = 'public'::regnamespace and c.relname not in ('schema_common', 'schema_service', 'installation', 'outbox_partitions', 'tenant_erasures')
		join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
		where a.attname <> 'tenant_id' and i.indexrelid::regclass::text <> all($1)`, workers)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := pgx.CollectRows(loose, pgx.RowTo[string]); err != nil || len(names) > 0 {
		t.Errorf("indexes that do not lead with the tenant: %v, %v", names, err)
	}
}
