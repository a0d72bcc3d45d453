package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/domain/report"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/migrations"
)

// busy returns the statements that store n bookings of two hours, six a day on each of 50 units from 2030-01-01 on. One in a hundred is canceled. One in 50
// has no unit and lasts for 3, 20, or 100 days.
func busy(n int) []string {
	return []string{
		`insert into units (tenant_id, livemode, id, name, opening_hours) select $1, $2, gen_random_uuid(), 'u' || n,
			case when n % 2 = 0 then '{"mon":[["08:00","20:00"]],"tue":[["08:00","20:00"]],"fri":[["08:00","20:00"]],"sat":[["20:00","02:00"]]}'::json end
			from generate_series(1, 50) n`,
		`insert into services (tenant_id, livemode, id, name) select $1, $2, gen_random_uuid(), 's' || n from generate_series(1, 5) n`,
		`insert into customers select $1, $2, gen_random_uuid(), 'Customer ' || n, 1, false from generate_series(1, 1000) n`,
		`with u as (select array_agg(id) ids from units where tenant_id = $1 and livemode = $2),
		      s as (select array_agg(id) ids from services where tenant_id = $1 and livemode = $2),
		      k as (select array_agg(id) ids from customers where tenant_id = $1 and livemode = $2),
		      w as (select n, date '2030-01-01' + n / 300 as day, n % 50 = 0 as long, lpad((8 + 2 * (n / 50 % 6))::text, 2, '0') || ':00' as clock
		            from generate_series(0, ` + fmt.Sprint(n-1) + `) n)
		insert into bookings (tenant_id, livemode, id, number, status, unit_id, service_id, customer_id, event_day, event_start, starts_at, ends_at,
			timezone, currency, total, gross, deposit, paid, refunded, payment_status)
		select $1, $2, gen_random_uuid(), 'B-' || n, case when n % 100 = 7 then 'cancelled' when n % 3 = 0 then 'pending' else 'confirmed' end,
			case when not long then u.ids[1 + n % 50] end, s.ids[1 + n % 5], k.ids[1 + n % 1000], day, clock,
			(day || ' ' || clock || ' America/New_York')::timestamptz,
			(day || ' ' || clock || ' America/New_York')::timestamptz
				+ case when not long then interval '2 hours' else (array[interval '3 days', '3 days', '20 days', '100 days'])[1 + n / 50 % 4] end,
			'America/New_York', 'USD', 1000, 1000, 0, 500, 0, 'partially_paid'
		from w, u, s, k`,
		`insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at)
			select tenant_id, livemode, id, unit_id, starts_at, ends_at from bookings
			where tenant_id = $1 and livemode = $2 and unit_id is not null and status <> 'cancelled'`,
		"analyze",
	}
}

// write runs the statements of busy as the owner, for one caller.
func write(t testing.TB, conn *pgx.Conn, c caller.Caller, statements []string) {
	t.Helper()
	for _, sql := range of(c.Tenant, c.Live(), statements) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func reportDays(t testing.TB, from string, n int) report.Days {
	t.Helper()
	loc, err := civil.Location("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	d, err := civil.ParseDate(from)
	if err != nil {
		t.Fatal(err)
	}
	return report.NewDays(availability.Range{From: d, To: d.AddDays(n - 1)}, loc)
}

// TestPlanOfBookingsDuring checks that a calendar, planned as the app role under row-level security, finds what a scan of all
// bookings finds. It reads only the bookings near its days and the longer bookings of its time.
func TestPlanOfBookingsDuring(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, busy(stored))
	var units []domain.UnitID
	var service domain.ServiceID
	err := conn.QueryRow(t.Context(), `select array(select id from units order by name limit 2), (select id from services where name = 's2')`).Scan(&units, &service)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		f    store.CalendarFilter
		most float64 // bookings that are read
	}{
		"a day":              {store.CalendarFilter{Days: reportDays(t, "2030-02-10", 1)}, 9*300 + 600},
		"a week":             {store.CalendarFilter{Days: reportDays(t, "2030-02-10", 7)}, 15*300 + 600},
		"of two units":       {store.CalendarFilter{Days: reportDays(t, "2030-02-10", 7), Units: units}, 15*300 + 600},
		"of a service":       {store.CalendarFilter{Days: reportDays(t, "2030-02-10", 7), Service: service}, 15*300 + 600},
		"with cancelled":     {store.CalendarFilter{Days: reportDays(t, "2030-02-10", 7), All: true}, 15*300 + 600},
		"after all":          {store.CalendarFilter{Days: reportDays(t, "2031-12-10", 7)}, 0},
		"months of the past": {store.CalendarFilter{Days: reportDays(t, "2029-01-01", 62)}, float64(stored)/200 + 5}, // the bookings of 100 days
	} {
		for _, mode := range pgtest.PlanModes {
			tc.f.Now = time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)
			var found []string
			plan := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error {
				list, err := store.BookingsDuring(ctx, tx, tc.f)
				for _, b := range list.Items {
					found = append(found, b.Number)
				}
				return err
			})
			if plan.Statements() != 1 {
				t.Errorf("%s: %d queries", name, plan.Statements())
			}
			if plan.Read("bookings") > tc.most || strings.Contains(plan.String(), "Seq Scan") {
				t.Errorf("%s, %s: %v of %d bookings are read, at most %v are to be\n%s", name, mode, plan.Read("bookings"), stored, tc.most, plan)
			}
			if want := bookingsOfDays(t, conn, tc.f); !slices.Equal(found, want) || tc.most > 1000 && len(found) == 0 {
				t.Errorf("%s, %s: found %d bookings, want %d", name, mode, len(found), len(want))
			}
		}
	}
}

// bookingsOfDays returns what a scan of all bookings finds.
func bookingsOfDays(t *testing.T, conn *pgx.Conn, f store.CalendarFilter) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select number from bookings where starts_at < $1 and ends_at > $2 and ($3 or status <> 'cancelled')
		and (cardinality($4::uuid[]) = 0 or unit_id = any($4)) and ($5::uuid is null or service_id = $5) order by event_day, id`,
		f.Time.To, f.Time.From, f.All, append([]domain.UnitID{}, f.Units...), f.Service)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPlanOfBookedDuring checks that statistics read only the bookings near their days and the longer bookings of their time.
func TestPlanOfBookedDuring(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, busy(stored))
	for name, tc := range map[string]struct {
		days report.Days
		most float64
	}{
		"a day":              {reportDays(t, "2030-02-10", 1), 9*300 + 600},
		"months":             {reportDays(t, "2030-01-20", 31), 39*300 + 600},
		"after all":          {reportDays(t, "2031-12-10", 92), 0},
		"months of the past": {reportDays(t, "2029-01-01", 92), float64(stored)/200 + 5},
	} {
		for _, mode := range pgtest.PlanModes {
			var found []report.Booked
			plan := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
				found, err = store.BookedDuring(ctx, tx, tc.days, time.Now())
				return err
			})
			if plan.Read("bookings") > tc.most || plan.Statements() != 1 || strings.Contains(plan.String(), "Seq Scan") {
				t.Errorf("%s, %s: %v of %d bookings are read, at most %v are to be\n%s", name, mode, plan.Read("bookings"), stored, tc.most, plan)
			}
			var want int
			err := conn.QueryRow(t.Context(), `select count(*) from bookings where status <> 'cancelled' and (event_day between $1 and $2
				or unit_id is not null and starts_at < $3 and ends_at > $4)`, tc.days.From.UTC(), tc.days.To.UTC(), tc.days.Time.To, tc.days.Time.From).Scan(&want)
			if err != nil || len(found) != want || tc.most > 1000 && want == 0 {
				t.Errorf("%s, %s: %d bookings, want %d, %v", name, mode, len(found), want, err)
			}
		}
	}
}

// TestPlanOfDueBookings checks that due bookings are found without reading all of them: holds by an index in the order of their
// ends, and deposits among the next bookings.
func TestPlanOfDueBookings(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.New(t, migrations.FS), ids.New[ids.TenantPrefix]()
	ctx, conn := pgtest.CtxOf(t, tenant, caller.Live), owner(t, db)
	for _, c := range []context.Context{ctx, pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Test)} { // holds of others are not read
		write(t, conn, caller.FromContext(c), busy(stored/3))
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, sql := range []string{ // every third booking is a hold, and none has an unpaid deposit
		`update bookings set hold_expires_at = timestamptz '2030-01-01Z' + substr(number, 3)::int * interval '1 minute' where status = 'pending'`,
		`update bookings set deposit = 100, paid = 100`,
		`analyze`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range pgtest.PlanModes {
		var holds, unpaid []report.Booking
		byEnd := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
			holds, err = store.HoldsUntil(ctx, tx, now, now.Add(report.SoonOver))
			return err
		})
		if len(holds) != report.MaxDue || byEnd.Read("bookings") > report.MaxDue {
			t.Errorf("%s: %d holds, %v bookings are read\n%s", mode, len(holds), byEnd.Read("bookings"), byEnd)
		}
		byDay := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
			unpaid, err = store.UnpaidDeposits(ctx, tx, civil.DateOf(now), now)
			return err
		})
		most := min(report.MaxSearched, stored/3) + stored/600 + 10 // the next bookings, and those that last longer than 64 days
		if len(unpaid) != 0 || byDay.Read("bookings") > float64(most) || strings.Contains(byDay.String(), "Seq Scan") {
			t.Errorf("%s: %d unpaid deposits, %v of %d bookings are read\n%s", mode, len(unpaid), byDay.Read("bookings"), stored, byDay)
		}
	}
}

// TestBookingsDuringAreBounded checks that a calendar contains at most the first 10,000 bookings.
func TestBookingsDuringAreBounded(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.New(t, migrations.FS), ids.New[ids.TenantPrefix]()
	ctx, conn := pgtest.CtxOf(t, tenant, caller.Test), owner(t, db)
	f := store.CalendarFilter{Days: reportDays(t, "2030-06-01", 31)}
	for _, rows := range []int{report.MaxBookings, 1} {
		if _, err := conn.Exec(t.Context(), `insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone, currency, total, gross, deposit, paid,
				refunded, payment_status)
			select $1, false, gen_random_uuid(), gen_random_uuid(), 'confirmed', date '2030-06-01' + n % 31, 'UTC', 'USD', 0, 0, 0, 0, 0, 'paid' from generate_series(1, $2) n`,
			tenant, rows); err != nil {
			t.Fatal(err)
		}
		list, err := store.BookingsDuring(ctx, db.App.Read(ctx), f)
		if err != nil || len(list.Items) != report.MaxBookings || list.More != (rows == 1) {
			t.Errorf("%d bookings, more %v, %v", len(list.Items), list.More, err)
		}
		if !slices.IsSortedFunc(list.Items, func(a, b report.Booking) int { return a.Day.UTC().Compare(b.Day.UTC()) }) {
			t.Error("the bookings are not in the order of their days")
		}
	}
}

// BenchmarkBookingsDuring measures calendars of 50 units with 100,000 bookings: a month of all units, a month of 50 named units,
// and a day.
func BenchmarkBookingsDuring(b *testing.B) {
	db, ctx, conn := filled(b, busy(100_000))
	units, err := pg.Many(b.Context(), conn, pgx.RowTo[domain.UnitID], `select id from units`)
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]store.CalendarFilter{
		"a month":             {Days: reportDays(b, "2030-06-01", 31)},
		"a month of 50 units": {Days: reportDays(b, "2030-06-01", 31), Units: units},
		"a day":               {Days: reportDays(b, "2030-06-01", 1)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				list, err := store.BookingsDuring(ctx, db.App.Read(ctx), f)
				if err != nil {
					b.Fatal(err)
				}
				n = len(list.Items)
			}
			b.ReportMetric(float64(n), "bookings")
		})
	}
}

// BenchmarkStatistics measures the statistics of 90 days of 50 units, half of them with opening hours, among 100,000 bookings.
func BenchmarkStatistics(b *testing.B) {
	db, ctx, _ := filled(b, busy(100_000))
	days := reportDays(b, "2030-05-01", 90)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		list, err := store.BookedDuring(ctx, db.App.Read(ctx), days, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		units, err := store.UnitHours(ctx, db.App.Read(ctx), nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := report.Statistics(ctx, days, "USD", units, list); err != nil {
			b.Fatal(err)
		}
		n = len(list)
	}
	b.ReportMetric(float64(n), "bookings")
}
