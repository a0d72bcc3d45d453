package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/report"
)

// operator returns ctx for an operator with these scopes.
func operator(ctx context.Context, scopes ...string) context.Context {
	return in(ctx, func(c *caller.Caller) { c.Credential, c.Scopes = "op_1", scopes })
}

type calendar struct {
	Timezone  string
	Data      []internalapi.CalendarBooking
	Closures  []internalapi.CalendarClosure
	Truncated bool
}

// calendar reads the bookings of a range of days.
func (w *world) calendar(ctx context.Context, query string) calendar {
	w.T.Helper()
	a := w.from(operator(ctx, "read:bookings"), "console", "GET", "/calendar?"+query, "").is(200)
	return decode[calendar](a)
}

// numbers returns the numbers of the bookings of a calendar, in its order.
func (w *world) numbers(ctx context.Context, query string) (list []string) {
	w.T.Helper()
	for _, b := range w.calendar(ctx, query).Data {
		list = append(list, b.Number)
	}
	return list
}

// TestCalendarShowsBookings checks that each field equals that of the public booking.
func TestCalendarShowsBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, ann := w.shop(ctx), w.customer(ctx)
	full := w.book(ctx, `"event_date":"2030-07-04","event_start_time":"10:00","package_id":%q,"unit_id":%q,"customer_id":%q,"guest_count":3,"hold_minutes":60`, s.flat, s.ada, ann)
	bare := w.book(ctx, `"event_date":"2030-07-05"`)
	got := w.calendar(ctx, "from=2030-07-04&to=2030-07-05")
	if got.Timezone != "America/New_York" || got.Truncated || len(got.Data) != 2 {
		t.Fatalf("got %+v", got)
	}
	b := got.Data[0]
	if b.ID != full.ID || b.Number != full.Number || b.Status != "pending" || *b.CustomerName != "Ann Smith" ||
		*b.UnitID != s.ada.String() || b.EventLocalDate != "2030-07-04" ||
		!b.StartsAt.Equal(*full.StartsAt) || !b.EndsAt.Equal(*full.EndsAt) || *b.EventStartTime != "10:00" || *b.EventEndTime != "12:00" ||
		!b.HoldExpiresAt.Equal(*full.HoldExpiresAt) || b.Version != 1 {
		t.Errorf("got %+v", b)
	}
	want := internalapi.CalendarBooking{
		ID: bare.ID, Number: bare.Number, Status: "pending", EventLocalDate: "2030-07-05", Version: 1,
	}
	if got.Data[1] != want {
		t.Errorf("got %+v, want %+v", got.Data[1], want)
	}
	w.Exec(`update customers set erased = true where name = 'Ann Smith'`)
	if b := w.calendar(ctx, "from=2030-07-04&to=2030-07-04").Data[0]; b.CustomerName != nil {
		t.Errorf("of an erased customer: %+v", b)
	}
}

// TestCalendarDays checks that a booking is in the calendar of each day that it or its claim touches, and of no other day.
func TestCalendarDays(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	day := func(date string, n int) string {
		d, _ := time.Parse(time.DateOnly, date)
		text := d.AddDate(0, 0, n).Format(time.DateOnly)
		return "from=" + text + "&to=" + text
	}
	for name, tc := range map[string]struct {
		zone, fields string
		first, last  string // days that show it
	}{
		"without times":         {"America/New_York", `"event_date":"2030-05-01"`, "2030-05-01", "2030-05-01"},
		"a whole day":           {"America/New_York", fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q`, s.cat), "2030-05-01", "2030-05-01"},
		"a whole short day":     {"America/New_York", fmt.Sprintf(`"event_date":"2030-03-10","unit_id":%q`, s.cat), "2030-03-10", "2030-03-10"},
		"to midnight":           {"America/New_York", `"event_date":"2030-05-01","event_start_time":"20:00","event_end_time":"00:00"`, "2030-05-01", "2030-05-01"},
		"past midnight":         {"America/New_York", `"event_date":"2030-05-01","event_start_time":"20:00","event_end_time":"00:01"`, "2030-05-01", "2030-05-02"},
		"three days":            {"America/New_York", `"starts_at":"2030-05-01T12:00:00Z","ends_at":"2030-05-03T12:00:00Z"`, "2030-05-01", "2030-05-03"},
		"two weeks":             {"America/New_York", `"starts_at":"2030-05-01T12:00:00Z","ends_at":"2030-05-15T12:00:00Z"`, "2030-05-01", "2030-05-15"},
		"a season":              {"America/New_York", `"starts_at":"2030-05-01T12:00:00Z","ends_at":"2030-09-01T12:00:00Z"`, "2030-05-01", "2030-09-01"},
		"a buffer before it":    {"America/New_York", fmt.Sprintf(`"event_date":"2030-05-02","event_start_time":"00:10","service_id":%q,"unit_id":%q`, s.tour, s.bee), "2030-05-01", "2030-05-02"},
		"a buffer after it":     {"America/New_York", fmt.Sprintf(`"event_date":"2030-05-01","event_start_time":"21:45","service_id":%q,"unit_id":%q`, s.tour, s.ada), "2030-05-01", "2030-05-02"},
		"no midnight":           {"America/Santiago", fmt.Sprintf(`"event_date":"2026-09-06","unit_id":%q`, s.cat), "2026-09-06", "2026-09-06"},
		"before no midnight":    {"America/Santiago", `"event_date":"2026-09-05","event_start_time":"22:00","event_end_time":"01:00"`, "2026-09-05", "2026-09-05"},
		"across no midnight":    {"America/Santiago", `"event_date":"2026-09-05","event_start_time":"22:00","event_end_time":"01:01"`, "2026-09-05", "2026-09-06"},
		"in a far-off timezone": {"Pacific/Kiritimati", `"event_date":"2030-05-01","event_start_time":"00:30","event_end_time":"01:00"`, "2030-05-01", "2030-05-01"},
	} {
		w := w
		zone := zoned(ctx, tc.zone)
		b := w.book(zone, tc.fields)
		for query, want := range map[string]bool{
			day(tc.first, -1): false, day(tc.first, 0): true, day(tc.last, 0): true, day(tc.last, 1): false,
			"from=" + tc.first + "&to=" + tc.last: true,
		} {
			if strings.Count(query, "2030-05-01") == 2 && tc.last == "2030-09-01" || tc.last == "2030-09-01" && strings.HasSuffix(query, tc.last) && strings.Contains(query, tc.first) {
				continue // more than 62 days
			}
			if got := w.numbers(zone, query); slices.Contains(got, b.Number) != want {
				t.Errorf("%s, %s: %v, want %s: %v", name, query, got, b.Number, want)
			}
		}
		w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200)
	}
	far := w.book(zoned(ctx, "Pacific/Kiritimati"), `"event_date":"2030-05-02","event_start_time":"00:30","event_end_time":"01:00"`) // 2030-05-01T10:30Z
	for query, want := range map[string]int{"from=2030-04-30&to=2030-04-30": 1, "from=2030-05-01&to=2030-05-03": 0} {
		if got := w.calendar(zoned(ctx, "Pacific/Pago_Pago"), query).Data; len(got) != want || want == 1 && (got[0].ID != far.ID || got[0].EventLocalDate != "2030-05-02") {
			t.Errorf("%s of an operator who has moved: %+v", query, got)
		}
	}
}

// TestCalendarFilters checks that a calendar can be filtered by units and by service. It contains canceled and expired bookings,
// by any clock, only if all bookings are requested.
func TestCalendarFilters(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	ada := w.book(ctx, `"event_date":"2030-05-01","event_start_time":"10:00","service_id":%q,"unit_id":%q,"status":"confirmed"`, s.tour, s.ada)
	bee := w.book(ctx, `"event_date":"2030-05-01","event_start_time":"10:00","service_id":%q,"unit_id":%q`, s.tour, s.bee)
	cat := w.book(ctx, `"event_date":"2030-05-01","unit_id":%q,"service_id":%q,"hold_minutes":60`, s.cat, s.rental)
	none := w.book(ctx, `"event_date":"2030-05-01"`)
	gone := w.book(ctx, `"event_date":"2030-05-01"`)
	w.do(ctx, "POST", "/bookings/"+gone.ID+"/cancel", "").is(200)
	w.Exec(`update units set status = 'retired' where id = $1`, s.bee) // its bookings stay
	const day = "from=2030-05-01&to=2030-05-01"
	check := func(query string, want ...booking) {
		t.Helper()
		got := w.numbers(ctx, day+query)
		for i, b := range want {
			want[i].ID = b.Number
		}
		if !slices.EqualFunc(got, want, func(n string, b booking) bool { return n == b.Number }) {
			t.Errorf("%q: %v", query, got)
		}
	}
	check("", ada, bee, cat, none)
	check("&all=true", ada, bee, cat, none, gone)
	check("&all=false&unit_ids=", ada, bee, cat, none)
	check("&unit_ids="+s.ada.String(), ada)
	check("&unit_ids="+s.cat.String()+","+s.bee.String(), bee, cat)
	check("&service_id="+s.tour.String(), ada, bee)
	check("&service_id=" + s.rental.String() + "&unit_ids=" + s.ada.String())
	w.clock.move(2 * time.Hour)
	check("", ada, bee, none)
	check("&all=true", ada, bee, cat, none, gone)
	if b := w.calendar(ctx, day+"&all=true&unit_ids="+s.cat.String()).Data[0]; b.Status != "expired" || b.Version != 2 {
		t.Errorf("an expired hold: %+v", b)
	}
	w.run()
	check("", ada, bee, none)
	w.clock.move(-2 * time.Hour)
}

// TestCalendarIsATenants checks that an operator sees the bookings of one tenant and one mode.
func TestCalendarIsATenants(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	test, live := both(tenant, t)
	const day = "from=2030-05-01&to=2030-05-01&all=true"
	for _, ctx := range []context.Context{test, live, pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Live)} {
		s := w.shop(ctx)
		b := w.book(ctx, `"event_date":"2030-05-01","unit_id":%q,"customer_id":%q`, s.ada, w.customer(ctx))
		if got := w.calendar(ctx, day).Data; len(got) != 1 || got[0].ID != b.ID || *got[0].CustomerName != "Ann Smith" {
			t.Errorf("got %+v", got)
		}
		if got := w.calendar(test, day+"&unit_ids="+s.ada.String()).Data; len(got) != map[bool]int{true: 1}[ctx == test] {
			t.Errorf("of another's unit: %+v", got)
		}
	}
}

func TestCalendarIsTheConsoles(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	reads := operator(ctx, "read:bookings")
	const path = "/calendar?from=2030-05-01&to=2030-05-01"
	for _, peer := range []string{"gateway", "customers", "payments"} {
		w.from(reads, peer, "GET", path, "").is(401, "invalid_credential")
	}
	for _, scopes := range [][]string{nil, {"write:bookings", "read:services", "read:customers"}} {
		a := w.from(operator(ctx, scopes...), "console", "GET", path, "").is(403, "insufficient_scope")
		if !strings.Contains(string(a.Body), "read:bookings") || !strings.Contains(a.Header.Get("WWW-Authenticate"), `scope="read:bookings"`) {
			t.Errorf("got %s %v", a.Body, a.Header)
		}
	}
	unit := id[domain.UnitPrefix]().String()
	hundred := strings.TrimSuffix(strings.Repeat(unit+",", report.MaxUnits), ",")
	for query, field := range map[string]string{
		"": "from", "from=2030-05-01": "to", "from=2030-05-02&to=2030-05-01": "to", "from=2030-05-01&to=2030-07-02": "to", "from=2030-05-01&to=x": "to",
		"from=2030-02-30&to=2030-03-01": "from", "from=2030-05-01&to=2030-05-01&unit_ids=x": "unit_ids",
		"from=2030-05-01&to=2030-05-01&unit_ids=" + hundred + "," + unit: "unit_ids",
		"from=2030-05-01&to=2030-05-01&service_id=" + unit:               "service_id",
	} {
		w.from(reads, "console", "GET", "/calendar?"+query, "").is(422, "invalid_request", field)
	}
	for _, query := range []string{"from=2030-05-01&to=2030-07-01", "from=2030-05-01&to=2030-05-01&unit_ids=" + hundred} {
		if got := w.calendar(ctx, query); got.Data == nil || len(got.Data) != 0 || got.Truncated {
			t.Errorf("%s: %+v", query, got)
		}
	}
}

// TestCalendarIsBounded checks that a response ends at 4 MiB and reports this. The store enforces the limit of 10,000 bookings.
func TestCalendarIsBounded(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, ann := w.shop(ctx), w.customer(ctx)
	bare := w.book(ctx, `"event_date":"2030-05-01"`)
	full := w.book(ctx, `"event_date":"2030-06-01","event_start_time":"10:00","customer_id":%q,"service_id":%q`, ann, s.tour)
	w.Exec(`update customers set name = repeat('x', 511)`)
	for _, tc := range []struct {
		of          booking
		query       string
		rows        int
		truncated   bool
		least, most int
	}{
		{bare, "from=2030-05-01&to=2030-05-01", 7_999, false, 8_000, 8_000},
		{bare, "from=2030-05-01&to=2030-05-01", 1_500, false, 9_500, 9_500},
		{full, "from=2030-06-01&to=2030-06-01", 7_000, true, 4_000, 6_999},
	} {
		w.Exec(`insert into bookings select (jsonb_populate_record(b, jsonb_build_object('id', gen_random_uuid(), 'number', 'C-' || gen_random_uuid()))).*
			from bookings b, generate_series(1, $2::int) n where b.id = $1`, must(t, tc.of.ID), tc.rows)
		a := w.from(operator(ctx, "read:bookings"), "console", "GET", "/calendar?"+tc.query, "").is(200)
		got := decode[calendar](a)
		if n := len(got.Data); got.Truncated != tc.truncated || n < tc.least || n > tc.most || len(a.Body) > report.MaxBytes+report.MaxBookings+200 {
			t.Errorf("%s: %d bookings, %d bytes, truncated %v", tc.query, n, len(a.Body), got.Truncated)
		}
	}
}
