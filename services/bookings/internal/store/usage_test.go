package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/migrations"
)

// The bookings of a day are those between its first and its last microsecond, for each tenant and mode, in any status. They are counted
// by an index, however many bookings other days have.
func TestBookingsCreated(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	// Each tenant and mode has as many bookings at each instant as its number, and 2,000 on other days.
	insert := `insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone, currency, total, gross, deposit, paid, refunded, payment_status, created_at)
		select $1, $2, gen_random_uuid(), gen_random_uuid()::text, case when n % 2 = 0 then 'cancelled' else 'pending' end, '2030-01-01', 'UTC', 'EUR', 1, 1, 0, 0, 0, 'unpaid', `
	for i, at := range []struct {
		tenant ids.Tenant
		live   bool
	}{{tenants[0], true}, {tenants[0], false}, {tenants[1], true}, {tenants[1], false}} {
		for _, instant := range []string{"2026-02-28 23:59:59.999999Z", "2026-03-01 00:00:00Z", "2026-03-01 23:59:59.999999Z", "2026-03-02 00:00:00Z"} {
			if _, err := conn.Exec(t.Context(), insert+fmt.Sprintf(`'%s' from generate_series(1, %d) n`, instant, i+1), at.tenant, at.live); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Exec(t.Context(), insert+`timestamptz '2025-01-01Z' + n * interval '1 hour' from generate_series(1, 2000) n`, at.tenant, at.live); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `analyze bookings`); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i, ctx := range []context.Context{
		pgtest.CtxOf(t, tenants[0], caller.Live), pgtest.CtxOf(t, tenants[0], caller.Test), pgtest.CtxOf(t, tenants[1], caller.Live), pgtest.CtxOf(t, tenants[1], caller.Test),
	} {
		n := int64(0)
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
			n, err = store.BookingsCreated(ctx, tx, from, from.AddDate(0, 0, 1))
			return err
		})
		if n != int64(2*(i+1)) {
			t.Errorf("%d bookings, want %d", n, 2*(i+1))
		}
		if !strings.Contains(plan.String(), "bookings_created") || strings.Contains(plan.String(), "Seq Scan") || !strings.Contains(plan.String(), "created_at >= ") {
			t.Errorf("%s", plan)
		}
	}
}
