package domain_test

import (
	"encoding/json"
	"testing"
	"time"

	"holdfast.dev/services/console/internal/domain"
)

// date is a day as the calendar counts days: midnight UTC.
func date(t *testing.T, s string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

var ranges = []struct {
	span                     domain.Span
	day, from, to, back, fwd string
}{
	{domain.DaySpan, "2027-01-01", "2027-01-01", "2027-01-01", "2026-12-31", "2027-01-02"},
	{domain.DaySpan, "2028-02-29", "2028-02-29", "2028-02-29", "2028-02-28", "2028-03-01"},
	{domain.WeekSpan, "2027-01-01", "2026-12-28", "2027-01-03", "2026-12-21", "2027-01-04"},
	{domain.WeekSpan, "2027-01-03", "2026-12-28", "2027-01-03", "2026-12-21", "2027-01-04"},
	{domain.WeekSpan, "2027-01-04", "2027-01-04", "2027-01-10", "2026-12-28", "2027-01-11"},
	{domain.MonthSpan, "2027-01-31", "2027-01-01", "2027-01-31", "2026-12-01", "2027-02-01"},
	{domain.MonthSpan, "2026-12-31", "2026-12-01", "2026-12-31", "2026-11-01", "2027-01-01"},
	{domain.MonthSpan, "2028-02-10", "2028-02-01", "2028-02-29", "2028-01-01", "2028-03-01"},
	{domain.MonthSpan, "2100-02-10", "2100-02-01", "2100-02-28", "2100-01-01", "2100-03-01"},
}

// TestClose checks the quarters of an hour that closures take from the units, and the days on which they are shown.
func TestClose(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	days := domain.Days(date(t, "2027-03-13"), date(t, "2027-03-15")) // the clock goes forward on the 14th
	units := []domain.Unit{{ID: "un_a"}, {ID: "un_b"}}
	rows := domain.CalendarRows(units, []domain.CalendarBooking{{EventLocalDate: "2027-03-13"}}, days, zone(t, "America/New_York"))
	all := domain.Close(rows, []domain.CalendarClosure{
		{ID: "cl_1", StartsAt: at("2027-03-14T05:00:00Z"), EndsAt: at("2027-03-15T04:00:00Z")},
		{ID: "cl_2", UnitIDs: []string{"un_b"}, StartsAt: at("2027-03-13T15:10:00Z"), EndsAt: at("2027-03-13T16:01:00Z")},
		{ID: "cl_3", UnitIDs: []string{"un_b"}, StartsAt: at("2027-03-16T04:00:00Z"), EndsAt: at("2027-03-17T04:00:00Z")},
	}, days, zone(t, "America/New_York"))
	if len(all[0]) != 0 || len(all[1]) != 1 || len(all[2]) != 0 {
		t.Errorf("closures of all units: %v", all)
	}
	closed := func(row, day int) (list []int) {
		for q, open := range rows[row].Open[day] {
			if !open {
				list = append(list, q)
			}
		}
		return list
	}
	for row, want := range [][]int{{0, 0, 0}, {0, 96, 0}, {5, 96, 0}} { // without a unit, un_a, un_b
		for day, n := range want {
			if got := closed(row, day); len(got) != n {
				t.Errorf("row %d, day %d: quarters %v are closed, want %d", row, day, got, n)
			}
		}
	}
	if got := closed(2, 0); got[0] != 40 || len(rows[2].Closed[0]) != 1 || rows[2].Closed[0][0].ID != "cl_2" || len(rows[2].Closed[2]) != 0 || len(rows[1].Closed[0]) != 0 {
		t.Errorf("10:10 to 11:01 closes %v; shown %v", got, rows[2].Closed)
	}
}

func TestRangeAndMove(t *testing.T) {
	t.Parallel()
	for _, tc := range ranges {
		from, to := tc.span.Range(date(t, tc.day))
		back, fwd := tc.span.Move(date(t, tc.day), -1), tc.span.Move(date(t, tc.day), 1)
		for name, pair := range map[string][2]string{
			"from": {from.Format(time.DateOnly), tc.from}, "to": {to.Format(time.DateOnly), tc.to},
			"back": {back.Format(time.DateOnly), tc.back}, "forward": {fwd.Format(time.DateOnly), tc.fwd},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s of %s: %s is %s, want %s", tc.span, tc.day, name, pair[0], pair[1])
			}
		}
	}
}

// TestRangesFollowEachOther checks for ten years that the ranges follow each other without a gap, and that each day is in its own
// range.
func TestRangesFollowEachOther(t *testing.T) {
	t.Parallel()
	for _, span := range []domain.Span{domain.DaySpan, domain.WeekSpan, domain.MonthSpan} {
		for d := date(t, "2024-01-01"); d.Year() < 2034; d = d.AddDate(0, 0, 1) {
			from, to := span.Range(d)
			next, _ := span.Range(span.Move(d, 1))
			before, end := span.Range(span.Move(d, -1))
			if d.Before(from) || d.After(to) || !next.Equal(to.AddDate(0, 0, 1)) || !end.Equal(from.AddDate(0, 0, -1)) || before.After(end) {
				t.Fatalf("%s of %s: %s to %s, then %s", span, d, from, to, next)
			}
			if n := len(domain.Days(from, to)); n != int(to.Sub(from).Hours()/24)+1 {
				t.Fatalf("%s of %s has %d days", span, d, n)
			}
		}
	}
}

// part is the position of a booking on one day: its column, width, and start. A width of 0 means that the booking is not on that
// day.
type part struct {
	column, width int
	start         string
	first         bool
}

var places = []struct {
	name, zone, first string // first is the first of the days
	start, end        string // RFC 3339, "" for a whole day
	local, clock      string // event_local_date, and event_start_time or ""
	want              []part
}{
	{"within a day", "UTC", "2027-03-01", "2027-03-01T09:15:00Z", "2027-03-01T11:00:00Z", "2027-03-01", "09:15", []part{{37, 7, "09:15", true}, {}}},
	{"an end that is no quarter", "UTC", "2027-03-01", "2027-03-01T09:05:00Z", "2027-03-01T09:50:00Z", "2027-03-01", "09:05", []part{{36, 4, "09:05", true}, {}}},
	{"shorter than a quarter", "UTC", "2027-03-01", "2027-03-01T09:00:00Z", "2027-03-01T09:05:00Z", "2027-03-01", "09:00", []part{{36, 1, "09:00", true}, {}}},
	{"to midnight", "UTC", "2027-03-01", "2027-03-01T22:00:00Z", "2027-03-02T00:00:00Z", "2027-03-01", "22:00", []part{{88, 8, "22:00", true}, {}}},
	{"from midnight", "UTC", "2027-03-01", "2027-03-01T00:00:00Z", "2027-03-01T01:00:00Z", "2027-03-01", "00:00", []part{{0, 4, "00:00", true}, {}}},
	{"over midnight", "UTC", "2027-03-01", "2027-03-01T22:00:00Z", "2027-03-02T02:00:00Z", "2027-03-01", "22:00", []part{{88, 8, "22:00", true}, {0, 8, "", false}}},
	{"three days", "UTC", "2027-03-01", "2027-03-01T12:00:00Z", "2027-03-03T12:00:00Z", "2027-03-01", "12:00", []part{{48, 48, "12:00", true}, {0, 96, "", false}, {0, 48, "", false}}},
	{"begun before", "UTC", "2027-03-01", "2027-02-27T12:00:00Z", "2027-03-01T12:00:00Z", "2027-02-27", "12:00", []part{{0, 48, "", false}, {}}},
	{"the whole day", "UTC", "2027-03-01", "2027-03-01T00:00:00Z", "2027-03-02T00:00:00Z", "2027-03-01", "", []part{{0, 96, "", true}, {}}},
	{"without times", "UTC", "2027-03-01", "", "", "2027-03-02", "", []part{{}, {0, 96, "", true}}},
	{"the day of the tenant", "America/New_York", "2027-03-01", "2027-03-02T03:00:00Z", "2027-03-02T05:00:00Z", "2027-03-01", "22:00", []part{{88, 8, "22:00", true}, {}}},
	{"before the clocks go forward", "America/New_York", "2027-03-13", "2027-03-14T04:00:00Z", "2027-03-14T06:00:00Z", "2027-03-13", "23:00", []part{{92, 4, "23:00", true}, {0, 4, "", false}}},
	{"as the clocks go forward", "America/New_York", "2027-03-14", "2027-03-14T06:00:00Z", "2027-03-14T08:00:00Z", "2027-03-14", "01:00", []part{{4, 12, "01:00", true}, {}}},
	{"the whole day of 23 hours", "America/New_York", "2027-03-14", "2027-03-14T05:00:00Z", "2027-03-15T04:00:00Z", "2027-03-14", "", []part{{0, 96, "", true}, {}}},
	{"as the clocks go back", "America/New_York", "2027-11-07", "2027-11-07T05:30:00Z", "2027-11-07T07:30:00Z", "2027-11-07", "01:30", []part{{6, 4, "01:30", true}, {}}},
	{"within the hour that comes twice", "America/New_York", "2027-11-07", "2027-11-07T05:30:00Z", "2027-11-07T06:15:00Z", "2027-11-07", "01:30", []part{{6, 1, "01:30", true}, {}}},
	{"the whole day of 25 hours", "America/New_York", "2027-11-07", "2027-11-07T04:00:00Z", "2027-11-08T05:00:00Z", "2027-11-07", "", []part{{0, 96, "", true}, {}}},
}

func TestCalendarRowsPlaceBookings(t *testing.T) {
	t.Parallel()
	for _, tc := range places {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			unit := "un_1"
			b := domain.CalendarBooking{ID: "bk_1", UnitID: &unit, EventLocalDate: tc.local}
			for s, into := range map[string]**time.Time{tc.start: &b.StartsAt, tc.end: &b.EndsAt} {
				if at, err := time.Parse(time.RFC3339, s); err == nil {
					*into = &at
				}
			}
			if tc.clock != "" {
				b.EventStartTime = &tc.clock
			}
			from := date(t, tc.first)
			days := domain.Days(from, from.AddDate(0, 0, len(tc.want)-1))
			rows := domain.CalendarRows([]domain.Unit{{ID: unit}}, []domain.CalendarBooking{b}, days, zone(t, tc.zone))
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			for i, want := range tc.want {
				var got part
				if slots := rows[0].Days[i]; len(slots) == 1 {
					got = part{slots[0].Column, slots[0].Width, slots[0].Start, slots[0].First}
				} else if len(slots) > 1 {
					t.Errorf("day %d: %d slots", i, len(slots))
				}
				if got != want {
					t.Errorf("day %d: %+v, want %+v", i, got, want)
				}
			}
		})
	}
}

// TestCalendarRowsOfUnits checks that bookings without a unit are in a separate first row, that bookings of a hidden unit have
// none, and that the bookings of a day are sorted by start.
func TestCalendarRowsOfUnits(t *testing.T) {
	t.Parallel()
	one, hidden := "un_1", "un_9"
	at := func(hour int) *time.Time { return new(time.Date(2027, 3, 1, hour, 0, 0, 0, time.UTC)) }
	days := domain.Days(date(t, "2027-03-01"), date(t, "2027-03-01"))
	rows := domain.CalendarRows([]domain.Unit{{ID: "un_1", Name: "One"}, {ID: "un_2", Name: "Two"}}, []domain.CalendarBooking{
		{ID: "late", UnitID: &one, StartsAt: at(15), EndsAt: at(16)},
		{ID: "early", UnitID: &one, StartsAt: at(9), EndsAt: at(10)},
		{ID: "hidden", UnitID: &hidden, StartsAt: at(9), EndsAt: at(10)},
		{ID: "free", StartsAt: at(9), EndsAt: at(10)},
		{ID: "day", UnitID: &one, EventLocalDate: "2027-03-01"},
		{ID: "without an end", UnitID: &one, EventLocalDate: "2027-03-01", StartsAt: at(9)},
		{ID: "before", UnitID: &one, EventLocalDate: "2027-02-28"},
		{ID: "after", UnitID: &one, EventLocalDate: "2027-03-02"},
	}, days, time.UTC)
	var got string
	for _, l := range rows {
		got += l.UnitID + ":"
		for _, s := range l.Days[0] {
			got += " " + s.ID
		}
		got += "; "
	}
	if want := ": free; un_1: day without an end early late; un_2:; "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{{"", ""}, {"Ada", "Ada"}, {"1234567890", "1234567890"}, {"12345678901", "1234567…"}, {"123456ö8901", "123456…"}, {"😀😀😀", "😀…"}} {
		if got := domain.Short(tc.in, 10); got != tc.want {
			t.Errorf("%q becomes %q, want %q", tc.in, got, tc.want)
		}
	}
}

var hours = []struct {
	name, status, hours string // hours as JSON
	day                 string
	open, shut          []int // quarters
}{
	{"no hours", "active", `null`, "2027-03-01", []int{0, 40, 95}, nil},
	{"two ranges", "active", `{"mon": [["09:00", "12:00"], ["13:30", "17:00"]]}`, "2027-03-01", []int{36, 47, 54, 67}, []int{0, 35, 48, 53, 68, 95}},
	{"another weekday", "active", `{"tue": [["09:00", "12:00"]]}`, "2027-03-01", nil, []int{0, 36, 95}},
	{"Sunday", "active", `{"sun": [["09:00", "12:00"]]}`, "2027-03-07", []int{36}, []int{35, 48}},
	{"to midnight", "active", `{"mon": [["20:00", "00:00"]]}`, "2027-03-01", []int{80, 95}, []int{0, 79}},
	{"over midnight", "active", `{"mon": [["20:00", "02:00"]]}`, "2027-03-01", []int{80, 95}, []int{0, 79}},
	{"after midnight", "active", `{"mon": [["20:00", "02:00"]]}`, "2027-03-02", []int{0, 7}, []int{8, 80}},
	{"after the midnight of Sunday", "active", `{"sun": [["20:00", "00:30"]]}`, "2027-03-01", []int{0, 1}, []int{2}},
	{"to 24:00", "active", `{"mon": [["20:00", "24:00"]]}`, "2027-03-01", []int{80, 95}, []int{79}},
	{"maintenance", "maintenance", `null`, "2027-03-01", nil, []int{0, 40, 95}},
	{"retired", "retired", `{"mon": [["09:00", "12:00"]]}`, "2027-03-01", nil, []int{36}},
	{"none at all", "active", `{}`, "2027-03-01", nil, []int{0, 40, 95}},
	{"broken", "active", `{"mon": [["09:00"], "x", [1, 2, 3]]}`, "2027-03-01", nil, []int{36}},
}

func TestOpenHours(t *testing.T) {
	t.Parallel()
	for _, tc := range hours {
		u := domain.Unit{ID: "un_1", Status: tc.status}
		if err := json.Unmarshal([]byte(tc.hours), &u.Hours); err != nil {
			t.Fatal(err)
		}
		l := domain.CalendarRows([]domain.Unit{u}, nil, []time.Time{date(t, tc.day)}, time.UTC)[0]
		for _, q := range tc.open {
			if !l.Open[0][q] {
				t.Errorf("%s: shut at quarter %d", tc.name, q)
			}
		}
		for _, q := range tc.shut {
			if l.Open[0][q] {
				t.Errorf("%s: open at quarter %d", tc.name, q)
			}
		}
		if l.AnyOpen(0) != (len(tc.open) > 0) {
			t.Errorf("%s: open at all: %v", tc.name, l.AnyOpen(0))
		}
	}
}

var holidays = []struct{ from, to, recurrence, day, want string }{
	{"2026-12-24", "2027-01-02", "none", "2026-12-23", ""},
	{"2026-12-24", "2027-01-02", "none", "2027-01-02", "it"},
	{"2026-12-24", "2027-01-02", "none", "2027-12-25", ""},
	{"2020-12-24", "2021-01-02", "yearly", "2027-12-24", "it"},
	{"2020-12-24", "2021-01-02", "yearly", "2027-12-31", "it"},
	{"2020-12-24", "2021-01-02", "yearly", "2028-01-02", "it"},
	{"2020-12-24", "2021-01-02", "yearly", "2028-01-03", ""},
	{"2020-12-24", "2021-01-02", "yearly", "2027-12-23", ""},
	{"2020-07-01", "2020-07-04", "yearly", "2027-07-04", "it"},
	{"2020-07-01", "2020-07-04", "yearly", "2027-06-30", ""},
	{"2020-02-29", "2020-02-29", "yearly", "2027-02-28", ""},
	{"2020-02-29", "2020-02-29", "yearly", "2028-02-29", "it"},
}

func TestHolidayOn(t *testing.T) {
	t.Parallel()
	for _, tc := range holidays {
		rules := []domain.Object{{"name": "other", "date_from": "2000-01-01", "date_to": "2000-01-01"}, {"name": "it", "date_from": tc.from, "date_to": tc.to, "recurrence": tc.recurrence}, {"name": "later", "date_from": tc.from, "date_to": tc.to, "recurrence": tc.recurrence}}
		if got := domain.HolidayOn(rules, date(t, tc.day)); got != tc.want {
			t.Errorf("%s to %s %s on %s: %q, want %q", tc.from, tc.to, tc.recurrence, tc.day, got, tc.want)
		}
	}
}
