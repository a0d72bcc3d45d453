package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain/report"
)

// statistics reads the totals of each day in a range.
func (w *world) statistics(ctx context.Context, from, to string) []internalapi.BookingDay {
	w.T.Helper()
	got := decode[internalapi.BookingStatistics](w.from(operator(ctx, "read:bookings"), "console", "GET", "/statistics?from="+from+"&to="+to, "").is(200))
	if c := caller.FromContext(ctx); got.Timezone != c.Timezone || got.Currency != c.Currency {
		w.T.Errorf("in %s and %s", got.Timezone, got.Currency)
	}
	return got.Data
}

// TestStatistics checks that each state of a booking counts as the contract specifies. Lapsed holds and canceled bookings do not
// count.
func TestStatistics(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.Exec(`update units set status = 'retired' where id <> all($1::uuid[])`, []any{s.ada, s.cat})
	at := func(day, clock, more string, args ...any) booking {
		return w.book(ctx, `"event_date":%q,"event_start_time":%q,`+more, append([]any{day, clock}, args...)...)
	}
	const onAda = `"package_id":%q,"unit_id":%q`
	at("2030-05-01", "08:00", onAda+`,"status":"confirmed"`, s.flat, s.ada)
	at("2030-05-01", "12:00", onAda+`,"hold_minutes":60`, s.flat, s.ada)
	done := at("2030-05-01", "16:00", onAda+`,"status":"confirmed"`, s.flat, s.ada)
	away := at("2030-05-01", "23:00", `"event_end_time":"02:00","service_id":%q,"unit_id":%q,"status":"confirmed"`, s.rental, s.cat)
	w.Exec(`update bookings set status = 'completed' where id = $1`, must(t, done.ID)) // as if the clock, and not the hold, were past them
	w.Exec(`update bookings set status = 'no_show' where id = $1`, must(t, away.ID))
	gone := at("2030-05-02", "08:00", onAda+`,"status":"confirmed"`, s.flat, s.ada)
	w.do(ctx, "POST", "/bookings/"+gone.ID+"/cancel", "").is(200)
	w.book(ctx, `"event_date":"2030-05-02","package_id":%q,"status":"confirmed"`, s.yen)
	w.book(ctx, `"event_date":"2030-05-03","unit_id":%q,"service_id":%q`, s.cat, s.rental)
	w.book(ctx, `"starts_at":"2030-04-20T12:00:00Z","ends_at":"2030-05-01T06:00:00Z","unit_id":%q,"service_id":%q`, s.cat, s.rental) // of an earlier day
	w.Exec(`update bookings set paid = 5000, refunded = 1000 where id = $1`, must(t, done.ID))
	check := func(want ...internalapi.BookingDay) {
		t.Helper()
		got := w.statistics(ctx, "2030-05-01", "2030-05-03")
		for i := range want {
			want[i].Date, want[i].OpenMinutes = fmt.Sprintf("2030-05-0%d", i+1), 2*1440
			if len(got) != 3 || got[i] != want[i] {
				t.Errorf("day %d: got %+v, want %+v", i, got[i], want[i])
			}
		}
	}
	second, third := internalapi.BookingDay{Bookings: 1, BookedMinutes: 120}, internalapi.BookingDay{Bookings: 1, BookedMinutes: 1440}
	check(internalapi.BookingDay{Bookings: 4, Revenue: 2 * 19999, Paid: 4000, BookedMinutes: 4*120 + 60}, second, third)
	w.clock.move(2 * time.Hour) // the hold has lapsed
	check(internalapi.BookingDay{Bookings: 3, Revenue: 2 * 19999, Paid: 4000, BookedMinutes: 3*120 + 60}, second, third)
	w.Exec(`update units set status = 'retired' where id = $1`, s.cat)
	if got := w.statistics(ctx, "2030-05-03", "2030-05-03")[0]; got.OpenMinutes != 1440 || got.BookedMinutes != 1440 {
		t.Errorf("of a retired unit: %+v", got)
	}
	w.clock.move(-2 * time.Hour)
}

// TestOpenMinutesAreThoseOfAvailability checks that the open time of units is the sum of the slots that availability shows for
// units whose openings are single slots, including on days of 23 and 25 hours.
func TestOpenMinutesAreThoseOfAvailability(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ zone, from, to string }{
		{"America/Santiago", "2026-09-04", "2026-09-08"}, // the 6th has no midnight
		{"America/New_York", "2026-03-07", "2026-03-09"},
		{"America/New_York", "2026-10-31", "2026-11-02"},
	} {
		w, ctx := newWorld(t), zoned(pgtest.Ctx(t, caller.Test), tc.zone)
		w.offer(ctx, "/units", `{"name":"Always"}`)
		w.offer(ctx, "/units", `{"name":"Night","opening_hours":{"fri":[["22:00","03:00"]],"sat":[["22:00","02:30"],["08:00","12:00"]],"sun":[["00:00","24:00"]]}}`)
		for _, d := range w.days(ctx, "from="+tc.from+"&to="+tc.to) {
			var open time.Duration
			for _, u := range d.Units {
				for _, s := range u.Slots {
					open += s.EndsAt.Sub(s.StartsAt)
				}
			}
			if got := w.statistics(ctx, d.Date, d.Date)[0]; got.OpenMinutes != int64(open.Minutes()) || got.OpenMinutes == 0 {
				t.Errorf("%s, %s: open for %d minutes, want %v", tc.zone, d.Date, got.OpenMinutes, open)
			}
		}
	}
}

// TestStatisticsAreATenants checks that an operator's statistics cover one tenant and one mode.
func TestStatisticsAreATenants(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	test, live := both(tenant, t)
	for n, ctx := range []context.Context{test, live, pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Live)} {
		if got := w.statistics(ctx, "2030-05-01", "2030-05-01")[0]; got != (internalapi.BookingDay{Date: "2030-05-01"}) {
			t.Errorf("before anything is booked: %+v", got)
		}
		s := w.shop(ctx)
		for range n + 1 {
			w.book(ctx, `"event_date":"2030-05-01","package_id":%q,"status":"confirmed"`, s.plain)
		}
	}
	for n, ctx := range []context.Context{test, live} {
		if got := w.statistics(ctx, "2030-05-01", "2030-05-01")[0]; got.Bookings != n+1 || got.Revenue != int64(n+1)*12345 || got.OpenMinutes != 3*1440 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestStatisticsAreTheConsoles(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	reads := operator(ctx, "read:bookings")
	const path = "/statistics?from=2030-05-01&to=2030-05-01"
	w.from(reads, "customers", "GET", path, "").is(401, "invalid_credential")
	w.from(operator(ctx, "read:services"), "console", "GET", path, "").is(403, "insufficient_scope")
	for query, field := range map[string]string{
		"": "from", "from=2030-05-01": "to", "from=2030-05-02&to=2030-05-01": "to", "from=2030-05-01&to=2030-08-01": "to", "from=x&to=2030-05-01": "from",
	} {
		w.from(reads, "console", "GET", "/statistics?"+query, "").is(422, "invalid_request", field)
	}
	if got := w.statistics(ctx, "2030-05-01", "2030-07-31"); len(got) != report.MaxStatisticsDays {
		t.Errorf("%d days", len(got))
	}
}

// TestStatisticsAreBounded checks that a range with more bookings than a response can cover is refused with an error on the field
// to.
func TestStatisticsAreBounded(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	tenant := caller.FromContext(ctx).Tenant
	fill := func(rows int) {
		w.Exec(`insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone, currency, total, gross, deposit, paid, refunded, payment_status)
			select $1, false, gen_random_uuid(), gen_random_uuid(), 'confirmed', '2030-05-01', 'UTC', 'USD', 3, 3, 0, 2, 0, 'paid' from generate_series(1, $2) n`, tenant, rows)
	}
	fill(report.MaxBooked)
	if got := w.statistics(ctx, "2030-05-01", "2030-05-01")[0]; got.Bookings != report.MaxBooked || got.Revenue != 3*report.MaxBooked || got.Paid != 2*report.MaxBooked {
		t.Errorf("got %+v", got)
	}
	fill(1)
	w.from(operator(ctx, "read:bookings"), "console", "GET", "/statistics?from=2030-05-01&to=2030-05-01", "").is(422, "invalid_request", "to")
}
