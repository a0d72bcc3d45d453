package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/migrations"
)

// TestDueReadsNoFutureHold checks that, among 8,000 holds of which few are due, the worker and a moved clock read only the due
// ones, by real time and by a test clock.
func TestDueReadsNoFutureHold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	live, frozen := pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Test)
	for _, ctx := range []context.Context{live, frozen} {
		c := caller.FromContext(ctx)
		_, err := conn.Exec(t.Context(), `insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone,
				currency, total, gross, deposit, paid, refunded, payment_status, hold_expires_at)
			select $1, $2, gen_random_uuid(), 'B-' || n, 'pending', '2030-01-01', 'UTC', 'USD', 0, 0, 0, 0, 0, 'unpaid',
				case when n <= 12 then timestamptz '2029-01-01' + n * interval '10 minutes' else timestamptz '2029-06-01' end
			from generate_series(1, 4000) n`, c.Tenant, c.Live())
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `insert into test_clocks values ($1, false, '2029-01-01T01:00:00Z', 2)`, caller.FromContext(frozen).Tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `vacuum analyze bookings`); err != nil {
		t.Fatal(err)
	}
	due := func(real time.Time, after store.Due) (all []store.Due) {
		t.Helper()
		err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
			all, err = store.AllDue(ctx, tx, real, after, 100)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	now := time.Date(2029, 1, 1, 2, 0, 0, 0, time.UTC) // 12 of live mode, 6 by the frozen clock
	got := due(now, store.Due{})
	if len(got) != 18 {
		t.Fatalf("%d are due, want 18", len(got))
	}
	if rest := due(now, got[9]); len(rest) != 8 || rest[0] != got[10] {
		t.Errorf("behind the tenth come %d", len(rest))
	}
	ahead, err := store.TenantDue(frozen, db.App.Read(frozen), now.AddDate(50, 0, 0), store.Due{}, 100)
	if err != nil || len(ahead) != 6 {
		t.Errorf("by its own clock %d are due, want 6: %v", len(ahead), err)
	}
	for name, sql := range map[string]string{"worker": store.AllDueSQL, "tenant": store.TenantDueSQL} {
		run := func(fn func(context.Context, pg.Tx) error) error { return db.Worker.SystemTx(t.Context(), fn) }
		args := []any{now, time.Time{}, [16]byte{}, 100}
		if name == "tenant" {
			run = func(fn func(context.Context, pg.Tx) error) error { return db.App.Tx(frozen, fn) }
			args = []any{pg.Args{"real": now, "at": time.Time{}, "id": [16]byte{}, "limit": 100}}
		}
		err := run(func(ctx context.Context, tx pg.Tx) error {
			plan := pgtest.NewExplained(t, tx)
			rows, err := plan.Query(ctx, sql, args...)
			if err != nil {
				return err
			}
			rows.Close()
			if !strings.Contains(plan.String(), "bookings_due") || strings.Contains(plan.String(), "Seq Scan on bookings") ||
				strings.Contains(plan.String(), "Rows Removed by Index Recheck") || plan.Removed() > 20 {
				t.Errorf("%s:\n%s", name, plan)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkerSeesHoldsOnly checks that the worker finds due holds, sees no other data of a booking, and writes nothing.
func TestWorkerSeesHoldsOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		c := caller.FromContext(pgtest.Ctx(t, mode))
		for _, sql := range []string{
			`insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone, currency, total, gross, deposit, paid, refunded, payment_status)
				values ($1, $2, gen_random_uuid(), 'B-1', 'pending', '2030-01-01', 'UTC', 'USD', 0, 0, 0, 0, 0, 'unpaid')`,
			`insert into test_clocks values ($1, $2, null, 1)`,
		} {
			if _, err := conn.Exec(t.Context(), sql, c.Tenant, c.Live()); err != nil {
				t.Fatal(err)
			}
		}
	}
	as := func(sql string) (n int64, err error) {
		err = db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			tag, err := tx.Exec(ctx, sql)
			n = tag.RowsAffected()
			return err
		})
		return n, err
	}
	for _, sql := range []string{`select tenant_id, livemode, id, status, hold_expires_at from bookings`, `select * from test_clocks`} {
		if n, err := as(sql); err != nil || n != 2 {
			t.Errorf("%s: %d rows, %v", sql, n, err)
		}
	}
	for _, sql := range []string{
		`select notes from bookings`, `select * from bookings`, `select customer_id from bookings`, `delete from bookings`,
		`update bookings set status = 'expired'`, `update test_clocks set version = 9`, `delete from test_clocks`,
		`insert into test_clocks (tenant_id, livemode, version) values (gen_random_uuid(), false, 1)`,
		`select from units`, `select from customers`, `select from unit_claims`,
	} {
		if _, err := as(sql); pg.Code(err) != "42501" {
			t.Errorf("%s: %v, want denied", sql, err)
		}
	}
}
