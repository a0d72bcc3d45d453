package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	ics "github.com/arran4/golang-ical"
	ical "github.com/emersion/go-ical"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/view"
)

func entry(loc *time.Location, from time.Time, length time.Duration) domain.CalendarEntry {
	to, start := from.Add(length), civil.ClockOf(from.In(loc))
	return domain.CalendarEntry{
		ID: domain.NewBookingID(), Number: "B-1", Status: domain.Confirmed, Version: 3, UpdatedAt: from, Loc: loc,
		Day: civil.DateOf(from.In(loc)), Start: &start, StartsAt: &from, EndsAt: &to,
	}
}

// TestEachTimeIsReadBackThroughTheCalendarsZone checks that every start and end, read through the VTIMEZONE of the calendar
// itself, is the booking's instant. It covers each clock change of zones in both hemispheres, one that shifts by half an hour,
// and one that never shifts.
func TestEachTimeIsReadBackThroughTheCalendarsZone(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{
		"America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "Europe/Dublin", "UTC",
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			loc, err := civil.Location(zone)
			if err != nil {
				t.Fatal(err)
			}
			first := time.Date(2026, 8, 20, 0, 0, 0, 0, time.UTC)
			c := domain.Calendar{Name: "N", Loc: loc, Today: civil.DateOf(first)}
			for at := first; at.Before(first.AddDate(0, 0, 490)); at = at.Add(7 * time.Hour) {
				c.Entries = append(c.Entries, entry(loc, at, 90*time.Minute))
			}
			for at := first.In(loc); ; { // each quarter of an hour around each change
				_, until := at.ZoneBounds()
				if until.IsZero() || until.After(first.AddDate(0, 0, 490)) {
					break
				}
				for k := -16; k <= 16; k++ {
					c.Entries = append(c.Entries, entry(loc, until.Add(time.Duration(k)*15*time.Minute).UTC(), 15*time.Minute))
				}
				at = until
			}
			readBack(t, c)
		})
	}
}

// readBack compares the instants that both libraries' readers find with the bookings' instants.
func readBack(t *testing.T, c domain.Calendar) {
	t.Helper()
	body := view.Calendar(c)
	second, err := ical.NewDecoder(bytes.NewReader(body)).Decode()
	if err != nil {
		t.Fatal(err)
	}
	first, err := ics.ParseCalendar(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	zones := zonesIn(t, second)
	events, others := second.Events(), first.Events()
	if len(events) != len(c.Entries) || len(others) != len(c.Entries) {
		t.Fatalf("%d and %d events of %d", len(events), len(others), len(c.Entries))
	}
	for i, e := range c.Entries {
		for _, end := range []struct {
			name string
			want time.Time
		}{{ical.PropDateTimeStart, *e.StartsAt}, {ical.PropDateTimeEnd, *e.EndsAt}} {
			p := events[i].Props.Get(end.name)
			if got := instant(t, zones, p.Params.Get("TZID"), p.Value); !got.Equal(end.want) {
				t.Errorf("%s %s;%v:%s is %s, want %s", e.Loc, end.name, p.Params, p.Value, got, end.want)
			}
			q := others[i].GetProperty(ics.ComponentProperty(end.name))
			tzid := ""
			if values := q.ICalParameters["TZID"]; len(values) > 0 {
				tzid = values[0]
			}
			if got := instant(t, zones, tzid, q.Value); !got.Equal(end.want) {
				t.Errorf("%s %s: the other library reads %s, want %s", e.Loc, end.name, got, end.want)
			}
		}
	}
}

// observance is one part of a VTIMEZONE.
type observance struct {
	onset    time.Time // local time by the previous offset
	from, to time.Duration
}

func zonesIn(t *testing.T, c *ical.Calendar) map[string][]observance {
	t.Helper()
	zones := map[string][]observance{}
	for _, child := range c.Children {
		if child.Name != ical.CompTimezone {
			continue
		}
		name := child.Props.Get(ical.PropTimezoneID).Value
		if zones[name] != nil {
			t.Errorf("%s is given twice", name)
		}
		for _, o := range child.Children {
			onset, err := time.Parse("20060102T150405", o.Props.Get(ical.PropDateTimeStart).Value)
			if err != nil {
				t.Fatal(err)
			}
			zones[name] = append(zones[name], observance{
				onset: onset, from: offsetOf(t, o.Props.Get(ical.PropTimezoneOffsetFrom).Value), to: offsetOf(t, o.Props.Get(ical.PropTimezoneOffsetTo).Value),
			})
		}
	}
	return zones
}

func offsetOf(t *testing.T, text string) time.Duration {
	t.Helper()
	var sign string
	var hours, minutes int
	if _, err := fmt.Sscanf(text, "%1s%2d%2d", &sign, &hours, &minutes); err != nil {
		t.Fatalf("offset %q: %v", text, err)
	}
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if sign == "-" {
		return -d
	}
	return d
}

// instant reads a DATE-TIME as RFC 5545 specifies. The last onset that is not after it determines the offset. Onsets are in the
// local time before the change, and a time that occurs twice means its first occurrence.
func instant(t *testing.T, zones map[string][]observance, tzid, value string) time.Time {
	t.Helper()
	if tzid == "" {
		at, err := time.Parse("20060102T150405Z", value)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	local, err := time.Parse("20060102T150405", value)
	if err != nil {
		t.Fatal(err)
	}
	list := zones[tzid]
	if len(list) == 0 {
		t.Fatalf("the calendar has no VTIMEZONE %q", tzid)
	}
	offset := list[0].from
	for _, o := range list {
		if !local.Before(o.onset) {
			offset = o.to
		}
	}
	return local.Add(-offset)
}

// TestLinesAreFolded checks that no line has more than 75 octets, no character is split, and the texts are read back completely.
func TestLinesAreFolded(t *testing.T) {
	t.Parallel()
	for shift := range 5 {
		notes := strings.Repeat("x", shift) + strings.Repeat("\U0001F6A4é,;\\", 200) + "\nsecond line\r\nthird \x07line"
		title, name := strings.Repeat("\U0001F6A4", 200), strings.Repeat("ä", 200)
		e := entry(time.UTC, time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), time.Hour)
		e.Title, e.Customer, e.Notes = &title, &name, &notes
		body := view.Calendar(domain.Calendar{Name: title, Loc: time.UTC, Today: e.Day, Entries: []domain.CalendarEntry{e}})
		text, ok := strings.CutSuffix(string(body), "\r\n")
		if !ok {
			t.Error("the last line does not end")
		}
		for line := range strings.SplitSeq(text, "\r\n") {
			if len(line) > 75 || !utf8.ValidString(line) || strings.ContainsAny(line, "\r\n\x07") || line == "" {
				t.Errorf("line %q of %d octets", line, len(line))
			}
		}
		wantSummary := title + " B-1"
		wantNotes := name + "\n" + strings.Repeat("x", shift) + strings.Repeat("\U0001F6A4é,;\\", 200) + "\nsecond line\nthird line"
		c, err := ical.NewDecoder(bytes.NewReader(body)).Decode()
		if err != nil {
			t.Fatal(err)
		}
		props := c.Events()[0].Props
		summary, _ := props.Text(ical.PropSummary)
		description, _ := props.Text(ical.PropDescription)
		if summary != wantSummary || description != wantNotes {
			t.Errorf("read back %q, %q", summary, description)
		}
		other, err := ics.ParseCalendar(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		event := other.Events()[0]
		if got := event.GetProperty(ics.ComponentPropertySummary).Value; got != wantSummary {
			t.Errorf("the other library reads %q", got)
		}
	}
}

// TestCalendarOfDaysAndStatuses checks that a whole day is a date without a zone, and that each status of a booking has its own
// status in a calendar.
func TestCalendarOfDaysAndStatuses(t *testing.T) {
	t.Parallel()
	want := map[domain.Status]string{
		domain.Pending: "TENTATIVE", domain.Confirmed: "CONFIRMED", domain.Completed: "CONFIRMED", domain.NoShow: "CONFIRMED",
		domain.Cancelled: "CANCELLED", domain.Expired: "CANCELLED",
	}
	titles := map[domain.Status]string{domain.Cancelled: "Cancelled: B-1", domain.Expired: "Expired: B-1"}
	for status, shown := range want {
		title, ended := titles[status]
		if !ended {
			title = "B-1"
		}
		e := entry(time.UTC, time.Date(2030, 12, 31, 0, 0, 0, 0, time.UTC), 24*time.Hour)
		e.Start, e.Status = nil, status
		body := string(view.Calendar(domain.Calendar{Name: "N", Loc: time.UTC, Today: e.Day, Entries: []domain.CalendarEntry{e}}))
		for _, line := range []string{
			"DTSTART;VALUE=DATE:20301231", "DTEND;VALUE=DATE:20310101", "STATUS:" + shown, "UID:" + e.ID.String(), "SEQUENCE:3",
			"DTSTAMP:20301231T000000Z", "SUMMARY:" + title, "X-WR-CALNAME:N", "REFRESH-INTERVAL;VALUE=DURATION:PT15M", "BEGIN:VTIMEZONE",
		} {
			if !strings.Contains(body, "\r\n"+line+"\r\n") {
				t.Errorf("%s: no line %q in\n%s", status, line, body)
			}
		}
		if strings.Contains(body, "\r\nTRANSP:TRANSPARENT\r\n") != ended {
			t.Errorf("%s: whether it takes time in\n%s", status, body)
		}
		if strings.Contains(body, "DESCRIPTION") {
			t.Errorf("%s: a description without details", status)
		}
	}
}
