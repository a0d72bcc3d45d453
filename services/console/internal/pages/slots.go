package pages

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"holdfast.dev/services/console/internal/domain"
)

func clock(hour int) string { return fmt.Sprintf("%02d:00", hour) }

// openHour reports whether a unit is open at any time of an hour.
func openHour(l domain.CalendarRow, hour int) bool {
	for q := hour * 4; q < hour*4+4; q++ {
		if l.Open[0][q] {
			return true
		}
	}
	return false
}

// lastHour is the last hour of a day.
const lastHour = 23

// passed reports whether an hour of a day has ended.
func (v CalendarView) passed(day time.Time, hour int) bool {
	date := day.Format(time.DateOnly)
	return date < v.Today || date == v.Today && hour < v.Hour
}

// books reports whether an empty cell that ends with an hour of a day links to the form of a new booking.
func (v CalendarView) books(day time.Time, hour int) bool {
	return v.CanMake && (v.Past || !v.passed(day, hour))
}

// hidesPast reports whether cells do not link to the form of a new booking because their time has passed.
func (v CalendarView) hidesPast() bool {
	first := lastHour
	if v.Span == domain.DaySpan {
		first = 0
	}
	return v.CanMake && !v.Past && len(v.Rows) > 0 && v.passed(v.Days[0], first)
}

// trackSpan returns the class of a cell that extends over all tracks of a row of the day.
func trackSpan(l domain.CalendarRow) string { return "rs-" + strconv.Itoa(l.Tracks(0)) }

// newAt returns the address of the form for a booking of a unit at a time.
func newAt(f Frame, l domain.CalendarRow, day time.Time, start string) templ.SafeURL {
	q := url.Values{"event_date": {day.Format(time.DateOnly)}}
	if l.UnitID != "" {
		q.Set("unit_id", l.UnitID)
	}
	if start != "" {
		q.Set("event_start_time", start)
	}
	return templ.URL(f.Workspace.Path("bookings/new") + "?" + q.Encode())
}

// closeOn returns the address of the form for a closure of a day.
func closeOn(f Frame, day time.Time) templ.SafeURL {
	date := day.Format(time.DateOnly)
	return templ.URL(f.Workspace.Path("closures/new") + "?" + url.Values{"date_from": {date}, "date_to": {date}}.Encode())
}

// ofDay returns the address of the list of the bookings of a unit on a day.
func ofDay(f Frame, l domain.CalendarRow, day time.Time) templ.SafeURL {
	q := url.Values{"event_date_from": {day.Format(time.DateOnly)}, "event_date_to": {day.Format(time.DateOnly)}}
	if l.UnitID != "" {
		q.Set("unit_id", l.UnitID)
	}
	return templ.URL(f.Workspace.Path("bookings") + "?" + q.Encode())
}

// movable reports whether a booking can still be moved. A departure cannot; its bookings can.
func movable(s domain.Slot) bool {
	return s.Departure == nil && (s.Status == "pending" || s.Status == "confirmed")
}

// endsWithinADay reports whether the end of a booking can be dragged. The end of a longer one is on another day.
func endsWithinADay(s domain.Slot) bool {
	return s.StartsAt != nil && s.EndsAt != nil && s.EndsAt.Sub(*s.StartsAt) < 24*time.Hour
}

// slotAddress returns the address of the page of a booking or of a departure.
func slotAddress(f Frame, base string, s domain.Slot) templ.SafeURL {
	if s.Departure == nil {
		return templ.URL(base + s.ID)
	}
	return templ.URL(f.Workspace.Path("departure") + "?" + url.Values{"unit_id": {*s.UnitID}, "starts_at": {s.StartsAt.Format(time.RFC3339Nano)}}.Encode())
}

var slotTones = map[string]string{"confirmed": "good", "completed": "good", "pending": "busy", "no_show": "bad"}

func slotTone(s domain.Slot) string {
	if d := s.Departure; d != nil {
		return map[bool]string{true: "good", false: "busy"}[d.Taken >= d.Seats]
	}
	return slotTones[s.Status]
}

func slotTitle(f Frame, s domain.Slot) string {
	if d := s.Departure; d != nil {
		return f.T("seats_taken", "Taken", d.Taken, "Seats", d.Seats) + ", " + f.T("bookings_count", "Count", d.Bookings)
	}
	parts := []string{s.Number, f.Word(s.Status)}
	switch {
	case s.EventStartTime == nil || s.EventEndTime == nil:
	case endsWithinADay(s):
		parts = append(parts, *s.EventStartTime+"–"+*s.EventEndTime)
	case s.StartsAt != nil && s.EndsAt != nil:
		parts = append(parts, f.DateTime(*s.StartsAt)+" – "+f.DateTime(*s.EndsAt))
	}
	if s.CustomerName != nil {
		parts = append(parts, s.Label())
	}
	return strings.Join(parts, ", ")
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
