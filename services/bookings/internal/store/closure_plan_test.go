package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
)

// closedDays are the statements that store as many closures as a tenant can have: each of one day, half of them of one unit.
var closedDays = append(busy(stored),
	`with u as (select array_agg(id) ids from units where tenant_id = $1 and livemode = $2)
	insert into closures (tenant_id, livemode, id, name, unit_ids, starts_at, ends_at, timezone)
	select $1, $2, gen_random_uuid(), 'c' || n, case when n % 2 = 0 then array[u.ids[1 + n % 50]] end, at, at + interval '1 day', 'America/New_York'
	from u, (select n, timestamptz '2030-02-01T05:00:00Z' + n * interval '1 day' as at from generate_series(-9999, 1000) n) n`,
	"analyze")

// TestPlansOfClosures checks that the closures of the longest range of days, the check of a new booking, and the conflicts of a day,
// as the app role under row-level security, use indexes and find the same rows as a comparison with each row.
func TestPlansOfClosures(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, closedDays)
	c := caller.FromContext(ctx)
	var unit domain.UnitID
	first := time.Date(2030, 2, 1, 5, 0, 0, 0, time.UTC)
	err := conn.QueryRow(t.Context(), `select unit_ids[1] from closures where unit_ids is not null
		and exists (select from bookings where unit_id = unit_ids[1] and status = 'confirmed' and starts_at >= $1 and ends_at <= $1 + interval '1 day') limit 1`, first).Scan(&unit)
	if err != nil {
		t.Fatal(err)
	}
	during := domain.Span{From: first, To: first.AddDate(0, 0, 62)}
	for name, filter := range map[string]*domain.UnitID{"all units": nil, "one unit": &unit} {
		var found []domain.Closure
		p := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = store.ClosuresDuring(ctx, tx, during, filter, limit.Closures.Active.Most)
			return err
		})
		if !strings.Contains(p.String(), "closures_time") || strings.Contains(p.String(), "Seq Scan") {
			t.Errorf("%s: the closures are not read by their time:\n%s", name, p)
		}
		var want int
		err := conn.QueryRow(t.Context(), `select count(*) from closures where starts_at < $1 and ends_at > $2 and ($3::uuid is null or unit_ids is null or $3 = any(unit_ids))`,
			during.To, during.From, filter).Scan(&want)
		if err != nil || len(found) != want || want < 20 {
			t.Errorf("%s: %d closures are found, %d expected, %v", name, len(found), want, err)
		}
	}
	k := domain.Closure{StartsAt: first, EndsAt: first.AddDate(0, 0, 1), Timezone: "America/New_York"}
	for name, units := range map[string][]domain.UnitID{"all units": nil, "one unit": {unit}} {
		k.UnitIDs = units
		var found []domain.BookingID
		p := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = store.Conflicts(ctx, tx, k, first)
			return err
		})
		// Nine days of 300 bookings, those of 2 to 64 days that can reach the day, and all of more than 64 days that have not ended.
		if most := float64(9*300 + 100 + stored/200); p.Read("bookings") > most || strings.Contains(p.String(), "Seq Scan") {
			t.Errorf("%s: reads %v bookings:\n%s", name, p.Read("bookings"), p)
		}
		rows, err := conn.Query(t.Context(), `select id from bookings where tenant_id = $1 and unit_id is not null and status in ('pending', 'confirmed')
			and starts_at < $2 and ends_at > $3 and ($4::uuid[] is null or unit_id = any($4)) order by starts_at, id limit 100`, c.Tenant, k.EndsAt, k.StartsAt, units)
		if err != nil {
			t.Fatal(err)
		}
		want, err := pgx.CollectRows(rows, pgx.RowTo[domain.BookingID])
		if err != nil || !slices.Equal(found, want) || len(want) == 0 {
			t.Errorf("%s: %d conflicts are found, %d expected, %v", name, len(found), len(want), err)
		}
	}
}

// TestPlanOfTheCheck checks that the trigger that compares a new booking with the closures reads them by their time.
func TestPlanOfTheCheck(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, closedDays)
	var unit domain.UnitID
	if err := conn.QueryRow(t.Context(), `select id from units limit 1`).Scan(&unit); err != nil {
		t.Fatal(err)
	}
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		for range 20 {
			_, err := tx.Exec(ctx, `insert into bookings (tenant_id, livemode, id, number, status, unit_id, event_day, starts_at, ends_at, timezone, currency, total, gross, deposit, paid, refunded, payment_status)
				select tenant_id, livemode, @id, 'C' || gen_random_uuid(), status, @unit, '2040-01-01', '2040-01-01', '2040-01-02', timezone, currency, total, gross, deposit, paid, refunded, payment_status
				from bookings where tenant_id = @tenant and livemode = @live and number = 'B-77'`, pg.Args{"id": domain.NewBookingID(), "unit": unit})
			if err != nil {
				return err
			}
		}
		type reads struct{ Scans, Checks int64 }
		r, err := pg.One(ctx, tx, pgx.RowToStructByName[reads], pgx.ErrNoRows,
			`select seq_scan as scans, idx_scan as checks from pg_stat_xact_user_tables where relname = 'closures'`)
		if r != (reads{Checks: 20}) {
			t.Errorf("scans of all closures and checks by index: %+v", r)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
