// Package availability determines what an operator offers and when: the slots of units, whether each is free, the lowest price of a
// day, and why a time cannot be booked. It is part of domain and also pure: the caller provides the catalogue, the claims, and the
// time.
package availability

import (
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// MaxDays is the longest range, including both ends, of a response with slots.
const MaxDays = 62

// Limits of one response.
const (
	MaxSlots    = 20_000
	MaxUnitDays = 20_000 // units times days
	MaxBytes    = 8 << 20
)

// MaxClaims is the largest number of claims that one response can depend on.
const MaxClaims = 100_000

// longestBuffer is the longest time for which, by the contract, a service can block its unit before or after a booking.
const longestBuffer = 1440 * time.Minute

// Range contains the days from From to To, both included.
type Range struct{ From, To civil.Date }

// ParseRange reads the days of a range, YYYY-MM-DD, which must exist in loc. The range must not exceed the given number of days.
// The errors are on from and to.
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

// Days returns the number of days in the range.
func (r Range) Days() int { return r.From.DaysUntil(r.To) + 1 }

// Window returns the time whose claims determine the result for the range: its days, the openings that continue into the next day,
// and the longest buffers around them. It does not depend on the catalogue, so claims and catalogue can be read in parallel.
func (r Range) Window(loc *time.Location) domain.Span {
	return domain.Span{
		From: r.From.AddDays(-1).End(loc).Add(-longestBuffer),
		To:   r.To.AddDays(1).End(loc).Add(longestBuffer),
	}
}
