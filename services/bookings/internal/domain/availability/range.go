// Package availability answers what an operator offers and when: the slots of units, whether each is free, what a
// day costs at least, and why a moment cannot be booked. It is a part of domain and as pure: the caller
// brings the catalogue, the claims and the time.
package availability

import (
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// MaxDays is the longest range that an answer with slots covers, both ends included.
const MaxDays = 62

// What one answer holds at most.
const (
	MaxSlots    = 20_000
	MaxUnitDays = 20_000 // units times days
	MaxBytes    = 8 << 20
)

// MaxClaims is the largest number of claims that one answer rests on.
const MaxClaims = 100_000

// longestBuffer is the most that the contract lets a service keep its unit busy before or after a booking.
const longestBuffer = 1440 * time.Minute

// Range is the days from From to To, both included.
type Range struct{ From, To civil.Date }

// ParseRange reads the days of an answer, YYYY-MM-DD, which must exist in loc; it has so many days at most. The errors are on
// from and to.
func ParseRange(from, to string, most int, loc *time.Location) (Range, error) {
	var failed []apperr.FieldError
	parse := func(name, text string) civil.Date {
		d, err := civil.ParseDate(text)
		message := "Must be a date, YYYY-MM-DD, between 1900-01-01 and 2199-12-31."
		if err == nil {
			if _, exists := d.Start(loc); exists {
				return d
			}
			message = civil.ErrNoSuchDay.Error()
		}
		failed = append(failed, apperr.FieldError{Field: name, Message: message})
		return d
	}
	r := Range{From: parse("from", from), To: parse("to", to)}
	switch {
	case len(failed) > 0:
		return Range{}, apperr.Fields(failed)
	case r.To.Before(r.From):
		return Range{}, apperr.Field("to", "Must not be before from.")
	case r.Days() > most:
		return Range{}, apperr.Field("to", "The range can have at most %d days.", most)
	}
	return r, nil
}

// Days counts the dates of the range.
func (r Range) Days() int { return r.From.DaysUntil(r.To) + 1 }

// Window is the time whose claims decide about the range: its days, the openings that run into the day
// after, and the longest buffers around them. It does not depend on the catalogue, so that claims and
// catalogue can be read side by side.
func (r Range) Window(loc *time.Location) domain.Span {
	return domain.Span{
		From: r.From.AddDays(-1).End(loc).Add(-longestBuffer),
		To:   r.To.AddDays(1).End(loc).Add(longestBuffer),
	}
}
