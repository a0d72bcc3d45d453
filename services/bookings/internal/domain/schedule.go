package domain

import (
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

// first sets the schedule of a new booking.
func (s *Schedule) first(w When, duration *int, loc *time.Location) error {
	byClock := w.Day != nil || w.Start.Pointer() != nil || w.End.Pointer() != nil
	switch {
	case byClock && (w.From != nil || w.To != nil):
		return field("starts_at", "Send either event_date with its times, or starts_at and ends_at.")
	case w.From == nil && w.To != nil:
		return field("starts_at", "Is required with ends_at.")
	case w.From != nil:
		return s.span(*w.From, w.To, duration, loc)
	case w.Day == nil:
		return field("event_date", "Is required.")
	}
	s.Day, s.EventAt, s.Start, s.End = *w.Day, w.At, w.Start.Pointer(), w.End.Pointer()
	return s.resolve(duration, loc)
}

// span sets the schedule from instants. A missing end follows from the duration.
func (s *Schedule) span(from time.Time, to *time.Time, duration *int, loc *time.Location) error {
	if to == nil {
		if duration == nil {
			return field("ends_at", "Is required: neither the package nor the service has a duration.")
		}
		end, err := after(from, *duration, loc)
		if err != nil {
			return field("ends_at", "%s", err)
		}
		to = &end
	} else {
		last := civil.ClockOf(to.In(loc))
		s.End = &last
	}
	if !to.After(from) {
		return field("ends_at", "Must be after starts_at.")
	}
	first := civil.ClockOf(from.In(loc))
	s.Day, s.EventAt, s.Start = civil.DateOf(from.In(loc)), &from, &first
	s.StartsAt, s.EndsAt = &from, to
	return nil
}

// move applies a change of day or times. Absent fields stay unchanged. If the end followed from a duration, it keeps its distance
// from the start, unless the package or service, and with it the duration, has changed.
func (s *Schedule) move(w When, duration *int, rewired bool, loc *time.Location) error {
	if s.Timed() && s.End == nil && (duration == nil || !rewired) {
		minutes := int(s.EndsAt.Sub(*s.StartsAt) / time.Minute)
		if !w.End.Given() {
			duration = &minutes
		}
	}
	if w.Day != nil {
		s.Day, s.EventAt = *w.Day, w.At
	}
	if w.Start.Given() {
		s.Start = w.Start.Pointer()
	}
	if w.End.Given() {
		s.End = w.End.Pointer()
	}
	return s.resolve(duration, loc)
}

// resolve converts day and wall-clock times to instants.
func (s *Schedule) resolve(duration *int, loc *time.Location) error {
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
	to, err := s.end(from, duration, loc)
	if err != nil {
		return err
	}
	s.StartsAt, s.EndsAt = &from, &to
	return nil
}

func (s *Schedule) end(from time.Time, duration *int, loc *time.Location) (time.Time, error) {
	if s.End == nil {
		if duration == nil {
			return time.Time{}, field("event_end_time", "Is required: neither the package nor the service has a duration.")
		}
		to, err := after(from, *duration, loc)
		if err != nil {
			return time.Time{}, field("event_end_time", "%s", err)
		}
		return to, nil
	}
	day := s.Day
	if *s.End <= *s.Start {
		day = day.AddDays(1)
	}
	to, ok := day.At(*s.End, loc)
	if !ok {
		return time.Time{}, field("event_end_time", "%s", civil.ErrNoSuchTime)
	}
	if !to.After(from) {
		return time.Time{}, field("event_end_time", "Must be after event_start_time.")
	}
	return to, nil
}

// after returns the end that follows from a duration. The end must be on a date that can be formatted.
func after(from time.Time, minutes int, loc *time.Location) (time.Time, error) {
	to := from.Add(Minutes(minutes))
	return to, civil.DateOf(to.In(loc)).Check()
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

// over returns the end of the event: the end of the day if no times are known.
func (s Schedule) over(loc *time.Location) time.Time {
	if s.EndsAt != nil {
		return *s.EndsAt
	}
	return s.Day.End(loc)
}
