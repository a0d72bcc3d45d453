package domain_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
)

// TestOpeningHoursAsPeopleWriteThem checks the notations of opening hours, and that ambiguous ones are rejected.
func TestOpeningHoursAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	field := forms.Field{Name: "opening_hours", Kind: "object", Nullable: true}
	for text, want := range map[string]string{
		"9-17":                       "[[09:00 17:00]]",
		"9am-5pm":                    "[[09:00 17:00]]",
		"9:00–18:00":                 "[[09:00 18:00]]",
		"09:00 — 12:00, 13:00-17:00": "[[09:00 12:00] [13:00 17:00]]",
		"8.30-12; 1:15 PM - 6 p.m.":  "[[08:30 12:00] [13:15 18:00]]",
		"12am-12pm":                  "[[00:00 12:00]]",
		"20-2":                       "[[20:00 02:00]]",
		"0-24":                       "[[00:00 24:00]]",
		"9-5":                        "",
		"9-5pm":                      "",
		"9 to 5":                     "",
		"25-26":                      "",
		"9:60-10":                    "",
		"13pm-14pm":                  "",
		"24:30-3":                    "",
		"noon":                       "",
	} {
		body, err := domain.Reader{}.Body([]forms.Field{field}, url.Values{"opening_hours.mon": {text}})
		hours, _ := body["opening_hours"].(map[string]any)
		if got := fmt.Sprint(hours["mon"]); (err != nil) != (want == "") || want != "" && got != want {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

// TestOverlappingSlotsHaveTracks checks that overlapping bookings of a day are in different tracks, and that a track is used again.
func TestOverlappingSlotsHaveTracks(t *testing.T) {
	t.Parallel()
	day := date(t, "2027-03-01")
	booking := func(number string, from, to int) domain.CalendarBooking {
		unit, start, end := "un_1", day.Add(time.Duration(from)*time.Hour), day.Add(time.Duration(to)*time.Hour)
		return domain.CalendarBooking{ID: number, Number: number, Status: "confirmed", UnitID: &unit, EventLocalDate: "2027-03-01", StartsAt: &start, EndsAt: &end}
	}
	rows := domain.CalendarRows([]domain.Unit{{ID: "un_1"}}, []domain.CalendarBooking{
		booking("a", 9, 12), booking("b", 10, 11), booking("c", 11, 13), booking("d", 12, 14), booking("e", 14, 15),
	}, domain.Days(day, day), day.Location())
	got := ""
	for _, s := range rows[0].Days[0] {
		got += fmt.Sprint(s.Number, s.Track, " ")
	}
	if got != "a0 b1 c1 d0 e0 " || rows[0].Tracks(0) != 2 {
		t.Errorf("%s in %d tracks", got, rows[0].Tracks(0))
	}
}
