package domain

import (
	"strings"
	"time"

	"holdfast.dev/libs/civil"
)

// Schedule is when a booking takes place. Start is nil for a whole day. End is nil if it follows from a duration. StartsAt and
// EndsAt are nil only for a day without times and without a unit.
type Schedule struct {
	Day              civil.Date
	EventAt          *time.Time // the instant given for the day; nil: the first instant of the day
	Start, End       *civil.Clock
	StartsAt, EndsAt *time.Time
}

// Timed reports whether the booking has a time of day.
func (s Schedule) Timed() bool { return s.Start != nil }

// longestBooking is the longest time that a booking can take, by the operator's clock.
const longestBooking = 366 * 24 * time.Hour

// oneDay is the length, by the operator's clock, from which a booking keeps its days and local times when it is moved. A shorter
// one keeps its elapsed time.
const oneDay = 24 * time.Hour

// duration is the length of a booking whose end is not given; nil minutes: unknown. services are those of its unit.
type duration struct {
	minutes  *int
	services []ServiceID
}

// missing returns the message of a booking that needs an end, and the services to name instead.
func (d duration) missing() string {
	const without = "Is required, because the booking names no package or service with a duration."
	if len(d.services) == 0 {
		return without
	}
	names := make([]string, 0, namedServices)
	for _, id := range d.services[:min(len(d.services), namedServices)] {
		names = append(names, id.String())
	}
	return without + " Services of the unit: " + strings.Join(names, ", ") + "."
}

// namedServices is the largest number of services in an error message.
const namedServices = 5

// first sets the schedule of a new booking.
func (s *Schedule) first(w When, d duration, loc *time.Location) error {
	from, to := w.From.Pointer(), w.To.Pointer()
	byClock := w.Day != nil || w.Start.Pointer() != nil || w.End.Pointer() != nil
	switch {
	case byClock && (from != nil || to != nil):
		return errTwoForms
	case from == nil && to != nil:
		return field("starts_at", "Is required with ends_at.")
	case from != nil:
		return s.span(*from, to, d, loc)
	case w.Day == nil:
		return field("event_date", "Is required.")
	}
	s.Day, s.EventAt, s.Start, s.End = *w.Day, w.At, w.Start.Pointer(), w.End.Pointer()
	return s.resolve(d, loc)
}

var errTwoForms = field("starts_at", "Send either event_date with its times, or starts_at and ends_at.")

// span sets the schedule from instants. A missing end follows from the duration.
func (s *Schedule) span(from time.Time, to *time.Time, d duration, loc *time.Location) error {
	s.End = nil
	if to != nil {
		s.End = clockAt(*to, loc)
	} else {
		if d.minutes == nil {
			return field("ends_at", "%s", d.missing())
		}
		to = new(from.Add(Minutes(*d.minutes)))
	}
	s.EventAt = &from
	return s.set(from, *to, "ends_at", loc)
}

// set sets the start and the end. name is the field of the error of an end that a booking cannot have.
func (s *Schedule) set(from, to time.Time, name string, loc *time.Location) error {
	if !to.After(from) {
		return field(name, "Must be after the start.")
	}
	if err := civil.DateOf(to.In(loc)).Check(); err != nil {
		return field(name, "%s", err)
	}
	if wall(to, loc).Sub(wall(from, loc)) > longestBooking {
		return field(name, "A booking lasts at most 366 days.")
	}
	s.Day, s.Start = civil.DateOf(from.In(loc)), clockAt(from, loc)
	s.StartsAt, s.EndsAt = &from, &to
	return nil
}

// resolve converts day and wall-clock times to instants.
func (s *Schedule) resolve(d duration, loc *time.Location) error {
	if s.Start == nil {
		if s.End != nil {
			return field("event_end_time", "Requires event_start_time.")
		}
		s.StartsAt, s.EndsAt = nil, nil
		return nil
	}
	from, ok := s.Day.At(*s.Start, loc)
	if !ok {
		return field("event_start_time", "%s", civil.ErrNoSuchTime)
	}
	if s.End == nil {
		return s.lasting(from, d, loc)
	}
	return s.until(from, s.Day, *s.End, loc)
}

// lasting sets the end that follows from a duration.
func (s *Schedule) lasting(from time.Time, d duration, loc *time.Location) error {
	if d.minutes == nil {
		return field("event_end_time", "%s", d.missing())
	}
	s.End = nil
	return s.set(from, from.Add(Minutes(*d.minutes)), "event_end_time", loc)
}

// until sets an end given as a time of day, on the day of the start or, at or before its time, on the next.
func (s *Schedule) until(from time.Time, day civil.Date, end civil.Clock, loc *time.Location) error {
	if end <= *clockAt(from, loc) {
		day = day.AddDays(1)
	}
	return s.endOn(from, day, end, loc)
}

func (s *Schedule) endOn(from time.Time, day civil.Date, end civil.Clock, loc *time.Location) error {
	to, ok := day.At(end, loc)
	if !ok {
		return field("event_end_time", "%s", civil.ErrNoSuchTime)
	}
	s.End = &end
	return s.set(from, to, "event_end_time", loc)
}

// wholeDay sets the instants of a booking without times: the operator-local day if the booking has a unit, and none otherwise.
func (s *Schedule) wholeDay(hasUnit bool, loc *time.Location) {
	if s.Timed() {
		return
	}
	s.StartsAt, s.EndsAt = nil, nil
	if from, ok := s.Day.Start(loc); ok && hasUnit {
		to := s.Day.End(loc)
		s.StartsAt, s.EndsAt = &from, &to
	}
}

// EndDay returns the local day of the end. A whole day ends on its own day.
func (s Schedule) EndDay(loc *time.Location) civil.Date {
	if !s.Timed() {
		return s.Day
	}
	return civil.DateOf(s.EndsAt.In(loc))
}

// over returns the end of the event: the end of the day if no times are known.
func (s Schedule) over(loc *time.Location) time.Time {
	if s.EndsAt != nil {
		return *s.EndsAt
	}
	return s.Day.End(loc)
}

// clockAt returns the time of day in loc.
func clockAt(t time.Time, loc *time.Location) *civil.Clock { return new(civil.ClockOf(t.In(loc))) }

// wall returns what the clock of loc shows at an instant, as if it were UTC.
func wall(t time.Time, loc *time.Location) time.Time {
	l := t.In(loc)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// atWall returns the first instant at which the clock of loc shows w. It returns false if the clock never shows it.
func atWall(w time.Time, loc *time.Location) (time.Time, bool) {
	minute := w.Truncate(time.Minute)
	t, ok := civil.DateOf(w).At(civil.ClockOf(w), loc)
	return t.Add(w.Sub(minute)), ok
}
