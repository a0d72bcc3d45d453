package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/migrations"
)

// plumbing is the tables without tenant and mode: what goose keeps of the schema's history.
var plumbing = []string{"schema_common", "schema_service"}

func owner(t testing.TB, db *pgtest.DB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func texts(t testing.TB, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tables(t testing.TB, conn *pgx.Conn) []string {
	t.Helper()
	all := texts(t, conn, `select relname::text from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace order by 1`)
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(plumbing, name) })
}

func TestEveryTableIsProtected(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	for _, name := range tables(t, conn) {
		ok := texts(t, conn, `select (relrowsecurity and relforcerowsecurity and exists (select from pg_policy p where p.polrelid = c.oid
			and pg_get_expr(p.polqual, p.polrelid) like '%tenant_id%livemode%'))::text from pg_class c where relname = $1 and relkind in ('r', 'p')`, name)
		first := texts(t, conn, `select string_agg(attname, ',' order by attnum)::text from pg_attribute
			where attrelid = $1::regclass and attnum in (1, 2)`, name)
		if !slices.Equal(ok, []string{"true"}) || !slices.Equal(first, []string{"tenant_id,livemode"}) {
			t.Errorf("%s: protected %v, leads with %v", name, ok, first)
		}
	}
	wrong := texts(t, conn, `select i.indexrelid::regclass::text from pg_index i
		join pg_class c on c.oid = i.indrelid and c.relnamespace = 'public'::regnamespace and c.relname <> all ($1)
		join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
		where a.attname <> 'tenant_id' and i.indexrelid::regclass::text not in ('outbox_order', 'idempotency_keys_expiry', 'inbox_expiry', 'bookings_due')`, plumbing)
	if len(wrong) > 0 {
		t.Errorf("indexes that do not lead with the tenant: %v", wrong)
	}
}

// Two tenants × two modes × every table × every verb: each sees and changes its own rows only.
func TestRowsOfOthers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	first, second := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	spaces := []context.Context{
		pgtest.CtxOf(t, first, caller.Test), pgtest.CtxOf(t, first, caller.Live), pgtest.CtxOf(t, second, caller.Test), pgtest.CtxOf(t, second, caller.Live),
	}
	for _, ctx := range spaces {
		c := caller.Must(ctx)
		fill(t, conn, c)
	}
	exec := func(ctx context.Context, sql string, args ...any) (int64, error) {
		var n int64
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			tag, err := tx.Exec(ctx, sql, args...)
			n = tag.RowsAffected()
			if err != nil {
				return err
			}
			return errUndo
		})
		if errors.Is(err, errUndo) {
			err = nil
		}
		return n, err
	}
	for _, name := range tables(t, conn) {
		for _, ctx := range spaces {
			c := caller.Must(ctx)
			for verb, sql := range map[string]string{
				"select": `select from ` + name,
				"update": `update ` + name + ` set tenant_id = tenant_id`,
			} {
				if n, err := exec(ctx, sql); err != nil || n != 1 {
					t.Errorf("%s %s as %s %s: %d rows, %v", verb, name, c.Tenant, c.Mode, n, err)
				}
			}
			for _, other := range spaces {
				o := caller.Must(other)
				if o.Tenant == c.Tenant && o.Mode == c.Mode {
					continue
				}
				where := fmt.Sprintf(` where tenant_id = '%x' and livemode = %v`, o.Tenant.UUID(), o.Live())
				for _, sql := range []string{`select from ` + name + where, `delete from ` + name + where, `update ` + name + ` set tenant_id = tenant_id` + where} {
					if n, err := exec(ctx, sql); err != nil || n != 0 {
						t.Errorf("%s: %d rows, %v", sql, n, err)
					}
				}
				if _, err := exec(ctx, fmt.Sprintf(`update %s set tenant_id = '%x', livemode = %v`, name, o.Tenant.UUID(), o.Live())); pg.Code(err) != "42501" {
					t.Errorf("%s: a row given to another: %v", name, err)
				}
			}
			if n, err := exec(pgtest.Ctx(t, caller.Test), `select from `+name); err != nil || n != 0 {
				t.Errorf("%s: a stranger sees %d rows, %v", name, n, err)
			}
		}
	}
}

var errUndo = errors.New("undo")

// fill gives the caller's tenant and mode one row in each table.
func fill(t *testing.T, conn *pgx.Conn, c caller.Caller) {
	t.Helper()
	u := `'01890000-0000-7000-8000-000000000001'`
	for _, sql := range []string{
		`insert into services (tenant_id, livemode, id, name) values ($1, $2, ` + u + `, 's')`,
		`insert into units (tenant_id, livemode, id, name) values ($1, $2, ` + u + `, 'u')`,
		`insert into unit_services values ($1, $2, ` + u + `, ` + u + `)`,
		`insert into packages (tenant_id, livemode, id, service_id, name, currency, base_price) values ($1, $2, ` + u + `, ` + u + `, 'p', 'USD', 1)`,
		`insert into package_units values ($1, $2, ` + u + `, ` + u + `)`,
		`insert into holiday_rules (tenant_id, livemode, id, name, date_from, date_to, multiplier_bps) values ($1, $2, ` + u + `, 'h', '2030-01-01', '2030-01-01', 1)`,
		`insert into customers values ($1, $2, ` + u + `, 'c', 1)`,
		`insert into bookings (tenant_id, livemode, id, number, status, unit_id, event_day, timezone, currency, total, deposit, paid, refunded, payment_status)
			values ($1, $2, ` + u + `, 'B-1', 'pending', ` + u + `, '2030-01-01', 'UTC', 'USD', 0, 0, 0, 0, 'unpaid')`,
		`insert into booking_metadata values ($1, $2, 'k', 'v', ` + u + `)`,
		`insert into unit_claims values ($1, $2, ` + u + `, ` + u + `, '2030-01-01', '2030-01-02')`,
		`insert into booking_counters values ($1, $2, 1)`,
		`insert into test_clocks values ($1, $2, null, 1)`,
		`insert into idempotency_keys (tenant_id, livemode, credential_id, key, fingerprint, expires_at) values ($1, $2, 'c', 'k', '', now())`,
		`insert into outbox (tenant_id, livemode, id, topic, aggregate_id, hash, message) values ($1, $2, ` + u + `, 't', 'a', 0, '')`,
		`insert into inbox values ($1, $2, 'c', ` + u + `, now())`,
	} {
		if _, err := conn.Exec(t.Context(), sql, c.Tenant, c.Live()); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
