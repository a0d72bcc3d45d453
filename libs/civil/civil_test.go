package civil_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"holdfast.dev/libs/civil"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := civil.Location(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func date(s string) civil.Date {
	d, err := civil.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestDaysAroundChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		zone, day, start string
		hours            float64
	}{
		{"America/New_York", "2026-03-08", "2026-03-08T05:00:00Z", 23},
		{"America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", 25},
		{"America/New_York", "2026-07-04", "2026-07-04T04:00:00Z", 24},
		{"America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", 23}, // its midnight does not exist
		{"America/Santiago", "2026-04-04", "2026-04-04T03:00:00Z", 25}, // midnight falls back to 23:00
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", 25},   // 00:00 occurs twice
		{"Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", 23.5},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", 24.5},
		{"Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z", 24}, // the 30th does not exist
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", 24},
		{"UTC", "2199-12-31", "2199-12-31T00:00:00Z", 24},
		{"Asia/Manila", "1900-01-01", "1899-12-31T16:00:00Z", 24},
	} {
		start, ok := date(tc.day).Start(zone(t, tc.zone))
		if got := start.Format(time.RFC3339); !ok || got != tc.start {
			t.Errorf("%s %s starts at %s, %v; want %s", tc.zone, tc.day, got, ok, tc.start)
		}
		if got := date(tc.day).End(zone(t, tc.zone)).Sub(start).Hours(); got != tc.hours {
			t.Errorf("%s %s has %v hours, want %v", tc.zone, tc.day, got, tc.hours)
		}
	}
	if _, ok := date("2011-12-30").Start(zone(t, "Pacific/Apia")); ok {
		t.Error("Apia had no 30 December 2011")
	}
}

func TestWallClock(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ zone, day, clock, want string }{
		{"America/New_York", "2026-03-08", "01:59", "2026-03-08T06:59:00Z"},
		{"America/New_York", "2026-03-08", "02:00", ""},
		{"America/New_York", "2026-03-08", "02:59", ""},
		{"America/New_York", "2026-03-08", "03:00", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01", "01:30", "2026-11-01T05:30:00Z"}, // the first of two
		{"America/New_York", "2026-11-01", "02:00", "2026-11-01T07:00:00Z"},
		{"America/Santiago", "2026-09-06", "00:30", ""},
		{"Australia/Lord_Howe", "2026-10-04", "02:15", ""},
		{"Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45:00Z"},
		{"Pacific/Apia", "2011-12-30", "12:00", ""},
	} {
		at, ok := date(tc.day).At(civil.Clock(tc.clock), zone(t, tc.zone))
		if ok != (tc.want != "") || ok && at.Format(time.RFC3339) != tc.want {
			t.Errorf("%s %s %s: %v, %v; want %s", tc.zone, tc.day, tc.clock, at, ok, tc.want)
		}
	}
}

// Days partition time: each existing day starts at the end of the previous one, on its own date.
func TestDaysMeet(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"America/New_York", "America/Santiago", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
		"Asia/Tehran", "Asia/Gaza", "America/Godthab", "Antarctica/Troll", "Europe/Lisbon", "Pacific/Kiritimati", "America/Asuncion",
	} {
		loc, missing := zone(t, name), 0
		end, _ := date("1994-12-25").Start(loc)
		for d := date("1994-12-25"); d.Before(date("2034-01-01")); d = d.AddDays(1) {
			start, ok := d.Start(loc)
			if !ok {
				missing++
				continue
			}
			if !start.Equal(end) || civil.DateOf(start.In(loc)) != d {
				t.Fatalf("%s %s starts at %s, the day before ended at %s", name, d, start, end)
			}
			if before := civil.DateOf(start.Add(-time.Nanosecond).In(loc)); before == d {
				t.Fatalf("%s %s starts before %s", name, d, start)
			}
			end = d.End(loc)
		}
		if missing > 1 {
			t.Errorf("%s lacks %d days", name, missing)
		}
	}
}

func TestParseDay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, zone, want string
		err              error
	}{
		{"2026-05-10", "America/New_York", "2026-05-10", nil},
		{"2026-05-10T02:00:00Z", "America/New_York", "2026-05-09", nil},
		{"2026-05-10T02:00:00.123456+14:00", "America/New_York", "2026-05-09", nil},
		{"2026-05-10t02:00:00z", "UTC", "2026-05-10", nil},
		{"2026-05-10T02:00:00", "UTC", "", civil.ErrDateFormat},
		{"2026-05-10 02:00:00Z", "UTC", "", civil.ErrDateFormat},
		{"2026-05-10T02:00:00,5Z", "UTC", "", civil.ErrDateFormat},
		{"2026-02-29", "UTC", "", civil.ErrDateFormat},
		{"2028-02-29", "UTC", "2028-02-29", nil},
		{"", "UTC", "", civil.ErrDateFormat},
		{"1900-01-01", "UTC", "1900-01-01", nil},
		{"1899-12-31", "UTC", "", civil.ErrDateRange},
		{"2199-12-31", "UTC", "2199-12-31", nil},
		{"2200-01-01", "UTC", "", civil.ErrDateRange},
		{"2199-12-31T23:00:00-05:00", "UTC", "", civil.ErrDateRange},
		{"2011-12-30", "Pacific/Apia", "", civil.ErrNoSuchDay},
	} {
		got, at, err := civil.ParseDay(tc.text, zone(t, tc.zone))
		if given, wrong := time.Parse(time.RFC3339Nano, strings.ToUpper(tc.text)); err == nil && (at != nil) != (wrong == nil) || at != nil && !at.Equal(given) {
			t.Errorf("%q in %s: the instant is %v", tc.text, tc.zone, at)
		}
		if !errors.Is(err, tc.err) || err == nil && got.String() != tc.want {
			t.Errorf("%q in %s: %v, %v; want %s, %v", tc.text, tc.zone, got, err, tc.want, tc.err)
		}
	}
}

func FuzzDate(f *testing.F) {
	for _, s := range []string{
		"2026-05-10", "2026-05-10T02:00:00Z", "2026-05-10t02:00:00.5+14:00", "2011-12-30", "2026-09-06", "0000-01-01", "2200-01-01",
		"2026-02-30", "2026-05-10T24:00:00Z", "2026-05-10T23:59:60Z", "٢٠٢٦-٠١-٠١",
	} {
		for _, z := range []string{"UTC", "Pacific/Apia", "America/Santiago", "Australia/Lord_Howe"} {
			f.Add(s, z)
		}
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		loc, err := civil.Location(name)
		if err != nil || strings.Contains(name, "..") {
			return
		}
		d, _, err := civil.ParseDay(text, loc)
		if err != nil {
			return
		}
		if again, _, err := civil.ParseDay(d.String(), loc); err != nil || again != d {
			t.Fatalf("%q: %s became %s, %v", text, d, again, err)
		}
		start, _ := d.Start(loc)
		if civil.DateOf(start.In(loc)) != d || !d.End(loc).After(start) {
			t.Fatalf("%q: %s starts at %s", text, d, start.In(loc))
		}
		at, err := civil.ParseInstant(text, loc)
		if err != nil || civil.DateOf(at.In(loc)) != d {
			t.Fatalf("%q: the instant %v, %v is not on %s", text, at, err, d)
		}
	})
}
