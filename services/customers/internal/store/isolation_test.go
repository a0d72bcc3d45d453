package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/migrations"
)

// rows are one row of each table: the columns beside tenant and mode, and their values.
var rows = map[string][2]string{
	"customers":         {"id, first_name, email, email_lower, version, created_at, updated_at", "gen_random_uuid(), 'a', 'b', 'b', 1, now(), now()"},
	"customer_words":    {"word, customer_id", "'w', gen_random_uuid()"},
	"customer_metadata": {"key, value, customer_id", "'k', 'v', gen_random_uuid()"},
	"idempotency_keys":  {"credential_id, key, fingerprint, expires_at", "'c', gen_random_uuid()::text, '', now()"},
	"outbox":            {"id, topic, aggregate_id, hash, message", "gen_random_uuid(), 't', 'a', 0, ''"},
	"inbox":             {"consumer, event_id, expires_at", "'c', gen_random_uuid(), now()"},
}

// shared are the tables without tenant or mode.
var shared = map[string]bool{"schema_common": true, "schema_service": true}

func TestEveryTableIsProtected(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	found, err := conn.Query(t.Context(), `
		select c.relname, c.relrowsecurity and c.relforcerowsecurity
		       and exists (select from pg_policy p where p.polrelid = c.oid) as safe,
		       coalesce((select array_agg(a.attname::text order by k.n) from pg_index i, unnest(i.indkey::int2[]) with ordinality k(att, n), pg_attribute a
		        where i.indrelid = c.oid and i.indisprimary and a.attrelid = c.oid and a.attnum = k.att and k.n <= 2), '{}') as leads
		from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	type table struct {
		Relname string
		Safe    bool
		Leads   []string
	}
	tables, err := pgx.CollectRows(found, pgx.RowToStructByName[table])
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, tb := range tables {
		if shared[tb.Relname] {
			continue
		}
		seen++
		if _, known := rows[tb.Relname]; !known {
			t.Errorf("table %s is in no list of this test", tb.Relname)
		}
		if !tb.Safe || fmt.Sprint(tb.Leads) != "[tenant_id livemode]" {
			t.Errorf("%+v: wants forced row-level security and a key led by tenant and mode", tb)
		}
	}
	if seen != len(rows) {
		t.Errorf("%d tables, want %d", seen, len(rows))
	}
}

// Two tenants in two modes: each writes a row of its own into each table, and sees and touches no other.
func TestIsolation(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS).App
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	type owner struct {
		tenant ids.Tenant
		mode   caller.Mode
	}
	var owners []owner
	for _, tenant := range tenants {
		owners = append(owners, owner{tenant, caller.Live}, owner{tenant, caller.Test})
	}
	run := func(o owner, sql string) (n int64, err error) {
		err = db.Tx(pgtest.CtxOf(t, o.tenant, o.mode), func(ctx context.Context, tx pg.Tx) error {
			tag, err := tx.Exec(ctx, sql)
			n = tag.RowsAffected()
			return err
		})
		return n, err
	}
	for table, row := range rows {
		insert := func(o owner) string {
			return fmt.Sprintf(`insert into %s (tenant_id, livemode, %s) values ('%x', %v, %s)`, table, row[0], o.tenant.UUID(), o.mode == caller.Live, row[1])
		}
		for _, me := range owners {
			if _, err := run(me, insert(me)); err != nil {
				t.Fatalf("%s: %v", table, err)
			}
		}
		for _, me := range owners {
			for _, other := range owners {
				if other == me {
					continue
				}
				of := fmt.Sprintf(`where tenant_id = '%x' and livemode = %v`, other.tenant.UUID(), other.mode == caller.Live)
				for verb, sql := range map[string]string{
					"select": `select from ` + table + ` ` + of, "delete": `delete from ` + table + ` ` + of,
					"update": `update ` + table + ` set livemode = livemode ` + of,
				} {
					if n, err := run(me, sql); err != nil || n != 0 {
						t.Errorf("%s %s of another: %d rows, %v", verb, table, n, err)
					}
				}
				if _, err := run(me, insert(other)); pg.Code(err) != "42501" {
					t.Errorf("insert into %s for another: %v", table, err)
				}
				move := fmt.Sprintf(`update %s set tenant_id = '%x', livemode = %v`, table, other.tenant.UUID(), other.mode == caller.Live)
				if _, err := run(me, move); pg.Code(err) != "42501" {
					t.Errorf("move of %s to another: %v", table, err)
				}
			}
			if n, err := run(me, `select from `+table); err != nil || n != 1 {
				t.Errorf("%s: sees %d rows, %v", table, n, err)
			}
		}
		if n := outside(t, db, table); n != 0 {
			t.Errorf("%s: %d rows without a tenant", table, n)
		}
	}
}

// outside counts what a connection sees that has set no tenant.
func outside(t *testing.T, db *pg.DB, table string) (n int64) {
	t.Helper()
	err := db.Worker(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `select from `+table)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWorkerSeesOnlyWhatItServes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS).Worker
	for _, table := range []string{"customers", "customer_words", "customer_metadata"} {
		err := db.Worker(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `select from `+table)
			return err
		})
		if pg.Code(err) != "42501" {
			t.Errorf("%s: %v", table, err)
		}
	}
}
