package domain

import "time"

// Policy is the operator's rules for bookings; a nil number checks nothing.
type Policy struct {
	AutoConfirm      bool
	HoldTTLMinutes   *int
	MinNoticeMinutes *int
	MaxAdvanceDays   *int
}

// Refuses returns the error on event_date of a schedule that comes too soon or too late. A timed event is
// measured by its start, a whole day by its date.
func (p Policy) Refuses(s Schedule, now time.Time, loc *time.Location) error {
	if p.MinNoticeMinutes != nil {
		earliest := now.Add(time.Duration(*p.MinNoticeMinutes) * time.Minute)
		late := s.Day.Before(DateOf(earliest.In(loc)))
		if s.Timed() {
			late = s.StartsAt.Before(earliest)
		}
		if late {
			return field("event_date", "Must be at least %d minutes from now.", *p.MinNoticeMinutes)
		}
	}
	if p.MaxAdvanceDays != nil {
		last := DateOf(now.In(loc)).AddDays(*p.MaxAdvanceDays)
		if last.Before(s.Day) {
			return field("event_date", "Must be on or before %s.", last)
		}
	}
	return nil
}
