package domain

import (
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/patch"
)

// changes returns which values of an input differ from those that a booking shows. A value that does not differ changes nothing.
type changes struct {
	date               bool // the instant that event_date shows
	day, start, end    bool // the local day and times
	startsAt, endsAt   bool
	byClock, byInstant bool // whether the booking moves by its local day and times, or by instants
}

func (s Schedule) changes(w When, loc *time.Location) changes {
	c := changes{
		start: w.Start.Given() && !same(w.Start.Pointer(), s.Start), end: w.End.Given() && !same(w.End.Pointer(), s.shownEnd(loc)),
		startsAt: w.From.Given() && !sameTime(w.From.Pointer(), s.StartsAt), endsAt: w.To.Given() && !sameTime(w.To.Pointer(), s.EndsAt),
	}
	if w.Day != nil {
		c.day = *w.Day != s.Day
		c.date = !w.event(loc).Equal(s.Event(loc))
	}
	c.byClock = c.date || c.start || c.end
	c.byInstant = c.startsAt || c.endsAt
	return c
}

// Event returns the instant given for the day, or else the first instant of the day.
func (s Schedule) Event(loc *time.Location) time.Time { return eventOf(s.Day, s.EventAt, loc) }

func (w When) event(loc *time.Location) time.Time { return eventOf(*w.Day, w.At, loc) }

func eventOf(day civil.Date, at *time.Time, loc *time.Location) time.Time {
	if at != nil {
		return at.UTC()
	}
	first, _ := day.Start(loc) // the day of a booking exists in its time zone
	return first.UTC()
}

// shownEnd returns the time of day of the end; nil for a whole day.
func (s Schedule) shownEnd(loc *time.Location) *civil.Clock {
	switch {
	case !s.Timed():
		return nil
	case s.End != nil:
		return s.End
	}
	return clockAt(*s.EndsAt, loc)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// move applies a change of day or times. A value that the booking already shows changes nothing. Only an end that is named changes
// the length: a booking of a day or more keeps its number of days and local times, a shorter one its elapsed time.
func (s *Schedule) move(w When, d duration, loc *time.Location) error {
	switch c := s.changes(w, loc); {
	case c.byClock && c.byInstant:
		return errTwoForms
	case c.byInstant:
		return s.moveSpan(w, d, loc)
	case c.byClock:
		return s.moveClock(w, c, d, loc)
	}
	return nil
}

// moveSpan moves a booking by instants.
func (s *Schedule) moveSpan(w When, d duration, loc *time.Location) error {
	from := s.StartsAt
	if w.From.Given() {
		from = w.From.Pointer()
	}
	switch {
	case from == nil && w.From.Given():
		return field("starts_at", "Cannot be null. To book the whole day, set event_start_time to null.")
	case from == nil:
		return field("starts_at", "Is required with ends_at.")
	case w.To.Given() || s.StartsAt == nil:
		return s.span(*from, w.To.Pointer(), d, loc)
	}
	if day := civil.DateOf(from.In(loc)); !s.Timed() && eventOf(day, nil, loc).Equal(*from) {
		s.Day, s.EventAt = day, from
		return nil
	}
	to, ok := s.retainLength(*from, loc)
	if !ok {
		return field("ends_at", "%s", civil.ErrNoSuchTime)
	}
	return s.span(*from, &to, d, loc)
}

// moveClock moves a booking by its local day and times.
func (s *Schedule) moveClock(w When, c changes, d duration, loc *time.Location) error {
	was := *s
	if c.date {
		s.Day, s.EventAt = *w.Day, w.At
	}
	if w.Start.Given() {
		s.Start = w.Start.Pointer()
	}
	switch {
	case s.Start == nil:
		return s.clear(was, w.End, loc)
	case !was.Timed():
		s.End = w.End.Pointer()
		return s.resolve(d, loc)
	}
	from, err := was.movedStart(*s, c, loc)
	if err != nil {
		return err
	}
	end := w.End.Pointer()
	switch {
	case end != nil:
		return was.movedEnd(s, from, *end, loc)
	case w.End.Given():
		return s.lasting(from, d, loc)
	}
	to, ok := was.retainLength(from, loc)
	if !ok {
		return field("event_end_time", "%s", civil.ErrNoSuchTime)
	}
	if s.End != nil {
		s.End = clockAt(to, loc)
	}
	return s.set(from, to, "event_end_time", loc)
}

// clear makes a booking take its whole day. A booking of more than a day must name both times, so that no day is freed by accident.
func (s *Schedule) clear(was Schedule, end patch.Field[civil.Clock], loc *time.Location) error {
	if end.Pointer() != nil || !end.Given() && was.Timed() && was.length(loc) > oneDay {
		return field("event_end_time", "Must be null too, because event_start_time is null.")
	}
	s.End, s.StartsAt, s.EndsAt = nil, nil, nil
	return nil
}

// movedStart returns the start on the day and at the time of next.
func (s Schedule) movedStart(next Schedule, c changes, loc *time.Location) (time.Time, error) {
	from, ok := *s.StartsAt, true
	switch {
	case c.start:
		from, ok = next.Day.At(*next.Start, loc)
	case c.day:
		from, ok = atWall(wall(from, loc).AddDate(0, 0, s.Day.DaysUntil(next.Day)), loc)
	}
	if !ok {
		return time.Time{}, field("event_start_time", "%s", civil.ErrNoSuchTime)
	}
	return from, nil
}

// movedEnd sets the end that is named as a time of day. A booking of more than a day keeps its number of days. An end that shows
// the same local day and time as before stays the same instant.
func (s Schedule) movedEnd(next *Schedule, from time.Time, end civil.Clock, loc *time.Location) error {
	last := s.EndDay(loc)
	day := civil.DateOf(from.In(loc))
	switch {
	case s.length(loc) > oneDay:
		day = day.AddDays(s.Day.DaysUntil(last))
	case end <= *clockAt(from, loc):
		day = day.AddDays(1)
	}
	if day == last && end == *s.shownEnd(loc) {
		next.End = &end
		return next.set(from, *s.EndsAt, "event_end_time", loc)
	}
	return next.endOn(from, day, end, loc)
}

// length returns the time from start to end by the operator's clock.
func (s Schedule) length(loc *time.Location) time.Duration {
	return wall(*s.EndsAt, loc).Sub(wall(*s.StartsAt, loc))
}

// retainLength returns the end of the booking after a move of its start. It returns false if the clock of loc never shows that end.
func (s Schedule) retainLength(from time.Time, loc *time.Location) (time.Time, bool) {
	if sameTime(&from, s.StartsAt) {
		return *s.EndsAt, true
	}
	if length := s.length(loc); length >= oneDay {
		return atWall(wall(from, loc).Add(length), loc)
	}
	return from.Add(s.EndsAt.Sub(*s.StartsAt)), true
}
