package domain

import "time"

// Started reports whether a booking has started at a local time. A booking without times starts with its day.
func Started(booking Object, now time.Time) bool {
	if start := booking.Time("starts_at"); start != nil {
		return !now.Before(*start)
	}
	return booking.Text("event_local_date") <= now.Format(time.DateOnly)
}
