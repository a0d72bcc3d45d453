package store_test

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// TestUsageMonthPlans checks that a page of a month reads the days of its tenants only, and the months of a tenant only its own days.
func TestUsageMonthPlans(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	for _, sql := range []string{
		`insert into usage_days (tenant_id, livemode, day, requests_read, requests_write, requests_export, requests_stream, requests_rejected,
			bookings, events, deliveries, payments, measured_at)
			select lpad(to_hex(n), 32, '0')::uuid, live, d::date, 1, 0, 0, 0, 0, 0, 0, 0, '[]', now()
			from generate_series(1, 1000) n, generate_series(date '2026-10-01', date '2026-11-30', interval '1 day') d, (values (true), (false)) m(live)`,
		`vacuum analyze usage_days`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	tenant := ids.FromUUID[ids.TenantPrefix]([16]byte{14: 1, 15: 244}) // the 500th
	october, november := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		list func(ctx context.Context, q pg.Q) ([]domain.UsageMonth, error)
		rows int
		most float64
	}{
		"month": {func(ctx context.Context, q pg.Q) ([]domain.UsageMonth, error) {
			return store.UsageOfMonth(ctx, q, november, domain.LastDay(november), store.UsageRow{TenantID: tenant}, 26)
		}, 26, 26 * 61 * 2},
		"tenant": {func(ctx context.Context, q pg.Q) ([]domain.UsageMonth, error) {
			return store.TenantUsageMonths(ctx, q, tenant, october, domain.LastDay(november), nil)
		}, 4, 122},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // one database
			err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
				plan := pgtest.NewExplained(t, tx)
				list, err := c.list(ctx, plan)
				if read := plan.Read("usage_days"); err != nil || len(list) != c.rows || read > c.most {
					t.Errorf("%d months, want %d; %v days read, want at most %v: %v\n%s", len(list), c.rows, read, c.most, err, &plan.Plan)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
