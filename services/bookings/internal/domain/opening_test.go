package domain_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/bookings/internal/domain"
)

func week(t testing.TB, text string) domain.OpeningHours {
	t.Helper()
	var h domain.OpeningHours
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOpeningHoursRoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`null`, `{}`, `{"sun":[]}`, `{"mon":[["09:00","17:00"]],"sun":[]}`,
		`{"fri":[["18:00","02:00"],["00:00","06:00"]],"sat":[["00:00","24:00"]],"tue":[["09:00","09:00"]]}`,
		`{"mon":[["09:00","12:00"],["12:00","15:00"]]}`,
	} {
		raw, err := json.Marshal(week(t, text))
		if err != nil || string(raw) != text {
			t.Errorf("%s became %s, %v", text, raw, err)
		}
	}
	if h := week(t, `null`); h != nil {
		t.Error("null is not nil")
	}
	if h := week(t, `{}`); h == nil || len(h.On(date("2026-05-11"), time.UTC)) != 0 {
		t.Error("a missing day is open")
	}
}

func TestOpeningHoursRefused(t *testing.T) {
	t.Parallel()
	for text, fields := range map[string]string{
		`{"mon":[["09:00"]]}`:                                             "opening_hours.mon.0",
		`{"mon":[["09:00","10:00","11:00"]]}`:                             "opening_hours.mon.0",
		`{"mon":[["24:00","10:00"]]}`:                                     "opening_hours.mon.0.0",
		`{"mon":[["09:00","24:01"]]}`:                                     "opening_hours.mon.0.1",
		`{"mon":[["9:00","25:00"]]}`:                                      "opening_hours.mon.0.0 opening_hours.mon.0.1",
		`{"mon":[["09:00","12:00"],["11:59","13:00"]]}`:                   "opening_hours.mon.1",
		`{"mon":[["20:00","02:00"],["01:00","03:00"],["23:00","24:00"]]}`: "opening_hours.mon.2",
		`{"mon":[["09:00","09:00"],["08:00","08:01"],["12:00","13:00"]]}`: "opening_hours.mon.2",
		`{"Mon":[],"monday":[],"sun":[["x","10:00"]]}`:                    "opening_hours.sun.0.0 opening_hours.Mon opening_hours.monday",
	} {
		var h domain.OpeningHours
		err := json.Unmarshal([]byte(text), &h)
		var e *apperr.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, f := range e.Fields {
			got = append(got, f.Field)
		}
		if strings.Join(got, " ") != fields {
			t.Errorf("%s: %v, want %s", text, got, fields)
		}
	}
}

func TestOpeningsOfADate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ zone, hours, day, want string }{
		"plain":                         {"UTC", `{"mon":[["13:00","17:00"],["09:00","12:00"]]}`, "2026-05-11", "11T09:00–11T12:00 11T13:00–11T17:00"},
		"another day":                   {"UTC", `{"mon":[["09:00","17:00"]]}`, "2026-05-12", ""},
		"past midnight":                 {"UTC", `{"mon":[["22:00","02:00"]]}`, "2026-05-11", "11T22:00–12T02:00"},
		"as long as a day":              {"UTC", `{"mon":[["09:00","09:00"]]}`, "2026-05-11", "11T09:00–12T09:00"},
		"until 24:00":                   {"UTC", `{"mon":[["22:00","24:00"]]}`, "2026-05-11", "11T22:00–12T00:00"},
		"until 00:00":                   {"UTC", `{"mon":[["22:00","00:00"]]}`, "2026-05-11", "11T22:00–12T00:00"},
		"always":                        {"America/New_York", `null`, "2026-03-08", "08T05:00–09T04:00"},
		"always, the long day":          {"America/New_York", `null`, "2026-11-01", "01T04:00–02T05:00"},
		"a day without midnight":        {"America/Santiago", `{"sun":[["00:00","24:00"]]}`, "2026-09-06", "06T04:00–07T03:00"},
		"ends at a midnight left out":   {"America/Santiago", `{"sat":[["20:00","24:00"]]}`, "2026-09-05", "06T00:00–06T04:00"},
		"ends after a midnight twice":   {"America/Santiago", `{"sat":[["20:00","24:00"]]}`, "2026-04-04", "04T23:00–05T04:00"},
		"opens in a gap":                {"America/New_York", `{"sun":[["02:30","05:00"]]}`, "2026-03-08", "08T07:00–08T09:00"},
		"closes in a gap":               {"America/New_York", `{"sun":[["01:00","02:30"]]}`, "2026-03-08", "08T06:00–08T07:00"},
		"closes in the next day's gap":  {"America/New_York", `{"sat":[["22:00","02:30"]]}`, "2026-03-07", "08T03:00–08T07:00"},
		"all in a gap":                  {"America/New_York", `{"sun":[["02:10","02:50"]]}`, "2026-03-08", ""},
		"closes in an hour that is two": {"America/New_York", `{"sun":[["00:00","01:30"]]}`, "2026-11-01", "01T04:00–01T05:30"},
		"over an hour that is two":      {"America/New_York", `{"sun":[["01:30","03:00"]]}`, "2026-11-01", "01T05:30–01T08:00"},
		"half an hour left out":         {"Australia/Lord_Howe", `{"sun":[["02:15","04:00"]]}`, "2026-10-04", "03T15:30–03T17:00"},
		"a date that did not exist":     {"Pacific/Apia", `{"fri":[["09:00","17:00"]]}`, "2011-12-30", ""},
		"always, on no date":            {"Pacific/Apia", `null`, "2011-12-30", ""},
		"runs into no date":             {"Pacific/Apia", `{"thu":[["22:00","05:00"]]}`, "2011-12-29", "30T08:00–30T10:00"},
	} {
		var got []string
		for _, s := range week(t, tc.hours).On(date(tc.day), zone(t, tc.zone)) {
			got = append(got, s.From.UTC().Format("02T15:04")+"–"+s.To.UTC().Format("02T15:04"))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// TestCoverIsTheUnionOfOpenings checks, minute by minute, that a unit covers what is within one of its openings.
func TestCoverIsTheUnionOfOpenings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hours := openingHours().Draw(t, "hours")
		loc, err := civil.Location(rapid.SampledFrom([]string{"America/New_York", "America/Santiago", "Australia/Lord_Howe"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		first := date(rapid.SampledFrom([]string{"2026-03-07", "2026-10-31", "2026-09-05", "2026-04-03", "2026-10-03"}).Draw(t, "first"))
		from := first.UTC().Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "from")) * 10 * time.Minute)
		s := domain.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "length")) * 10 * time.Minute)}
		want := true
		for at := s.From; at.Before(s.To) && want; at = at.Add(time.Minute) {
			want = open(hours, first, domain.Span{From: at, To: at.Add(time.Minute)}, loc)
		}
		if got := hours.Cover(s, loc); got != want {
			t.Fatalf("%v covers %v: %v", hours.Table(), s, got)
		}
	})
}

func open(hours domain.OpeningHours, first civil.Date, minute domain.Span, loc *time.Location) bool {
	for n := -3; n < 8; n++ {
		for _, o := range hours.On(first.AddDays(n), loc) {
			if o.Overlaps(minute) {
				return true
			}
		}
	}
	return false
}

// openingHours draws a week, or occasionally null. It omits openings that would overlap.
func openingHours() *rapid.Generator[domain.OpeningHours] {
	return rapid.Custom(func(t *rapid.T) domain.OpeningHours {
		if rapid.IntRange(0, 5).Draw(t, "always") == 0 {
			return nil
		}
		clock := func(name string) string {
			m := rapid.IntRange(0, 143).Draw(t, name) * 10
			return time.Time{}.Add(time.Duration(m) * time.Minute).Format("15:04")
		}
		table := map[string][][]string{}
		for _, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
			for range rapid.IntRange(0, 2).Draw(t, day) {
				pair := []string{clock("open"), clock("close")}
				if pair[1] == "00:00" && rapid.Bool().Draw(t, "24") {
					pair[1] = "24:00"
				}
				was := table[day]
				table[day] = append(slices.Clone(was), pair)
				if _, err := domain.ParseOpeningHours(table); err != nil {
					table[day] = was
				}
			}
		}
		h, err := domain.ParseOpeningHours(table)
		if err != nil || !reflect.DeepEqual(h.Table(), table) {
			t.Fatalf("%v became %v, %v", table, h.Table(), err)
		}
		return h
	})
}

func TestBookingOutsideOpeningHours(t *testing.T) {
	t.Parallel()
	loc := zone(t, "America/New_York")
	unit := domain.Unit{ID: id[domain.UnitPrefix](), Status: domain.UnitActive, OpeningHours: week(t, `{"mon":[["09:00","17:00"]],"tue":[["20:00","04:00"]],"thu":[["00:00","24:00"]],"fri":[["00:00","24:00"]]}`)}
	name := unit.ID.String()
	for _, tc := range []struct {
		input domain.BookingInput
		field string
	}{
		{domain.BookingInput{EventDate: patch.Value("2026-05-11"), Start: given("09:00"), End: given("17:00")}, ""},
		{domain.BookingInput{EventDate: patch.Value("2026-05-11"), Start: given("08:59"), End: given("17:00")}, "event_start_time"},
		{domain.BookingInput{EventDate: patch.Value("2026-05-11"), Start: given("09:00"), End: given("17:01")}, "event_start_time"},
		{domain.BookingInput{EventDate: patch.Value("2026-05-12"), Start: given("22:00"), End: given("04:00")}, ""},
		{domain.BookingInput{EventDate: patch.Value("2026-05-13"), Start: given("00:00"), End: given("04:00")}, ""},
		{domain.BookingInput{EventDate: patch.Value("2026-05-13"), Start: given("04:00"), End: given("05:00")}, "event_start_time"},
		{domain.BookingInput{EventDate: patch.Value("2026-05-14"), Start: given("22:00"), End: given("04:00")}, ""},
		{domain.BookingInput{StartsAt: given("2026-05-11T13:00:00Z"), EndsAt: given("2026-05-11T21:00:00Z")}, ""},
		{domain.BookingInput{StartsAt: given("2026-05-11T12:59:00Z"), EndsAt: given("2026-05-11T21:00:00Z")}, "starts_at"},
		{domain.BookingInput{EventDate: patch.Value("2026-05-11")}, ""},
		{domain.BookingInput{EventDate: patch.Value("2026-05-13")}, "event_date"},
	} {
		tc.input.UnitID = given(name)
		when, err := tc.input.When(loc)
		if err != nil {
			t.Fatal(err)
		}
		refs := domain.Refs{Unit: &unit}
		booked, err := domain.New(tc.input, when, refs, domain.Policy{}, domain.Booking{Loc: loc}, time.Time{})
		if got := fieldOf(err); got != tc.field {
			t.Errorf("%+v: %v", when, err)
		}
		if err != nil {
			continue
		}
		// A booking that was created before the unit closed keeps its time, but cannot be moved within the closed hours.
		shut := unit
		shut.OpeningHours = domain.OpeningHours{}
		if _, err := booked.ApplySchedule(domain.BookingInput{GuestCount: patch.Value(2)}, domain.When{}, domain.Refs{Unit: &shut}, domain.Policy{}, time.Time{}); err != nil {
			t.Errorf("%+v: guests: %v", when, err)
		}
		if _, err := booked.ApplySchedule(tc.input, when, domain.Refs{Unit: &shut}, domain.Policy{}, time.Time{}); err != nil {
			t.Errorf("%+v: its own time: %v", when, err)
		}
		next := domain.BookingInput{EventDate: patch.Value(booked.Day.AddDays(7).String())}
		if when, err = next.When(loc); err != nil {
			t.Fatal(err)
		}
		if _, err := booked.ApplySchedule(next, when, domain.Refs{Unit: &shut}, domain.Policy{}, time.Time{}); err == nil {
			t.Errorf("%+v moved into closed hours", when)
		}
	}
}

// TestCoverWhereADayBeginsTwice checks a day on which the clock goes back from 00:01 to the day before: the new day opens, and
// opens again an hour later.
func TestCoverWhereADayBeginsTwice(t *testing.T) {
	t.Parallel()
	hours := week(t, `{"sun":[["00:00","06:00"]]}`)
	from := time.Date(2010, 11, 7, 2, 50, 0, 0, time.UTC) // 23:20 on Saturday, for the second time
	if s := (domain.Span{From: from, To: from.Add(time.Minute)}); !hours.Cover(s, zone(t, "America/St_Johns")) {
		t.Error("Sunday's opening does not go on")
	}
	if s := (domain.Span{From: from.Add(-time.Hour), To: from}); hours.Cover(s, zone(t, "America/St_Johns")) {
		t.Error("Saturday is open")
	}
}
