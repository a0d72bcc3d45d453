// Package report contains the operator's views of many bookings: the calendar of a range of days, and the totals of its days. It is
// part of domain and pure.
package report

import (
	"time"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// Bounds of a calendar, as in proto/internal/bookings.yaml.
const (
	MaxUnits    = 100
	MaxBookings = 10_000
	MaxClosures = 500
	MaxBytes    = 4 << 20
)

// Bounds of the bookings that need attention, as in proto/internal/bookings.yaml.
const (
	MaxDue      = 10
	SoonOver    = 24 * time.Hour // a hold that ends within this time is due
	MaxSearched = 10_000         // bookings that are searched for unpaid deposits
)

// Booking is a booking in one of the console's lists. Fields of domain.Booking that these lists do not show are empty.
type Booking struct {
	domain.Booking
	CustomerName *string // nil: unknown or erased
}

// At returns the booking as every reader sees it.
func (b Booking) At(now time.Time) Booking {
	b.Booking = b.Booking.At(now)
	return b
}

// Days contains the days of a report and the time that they span.
type Days struct {
	availability.Range
	Time domain.Span
	Loc  *time.Location // the operator's
}

// NewDays returns the days of a range whose dates were parsed in loc.
func NewDays(r availability.Range, loc *time.Location) Days {
	from, _ := r.From.Start(loc) // a parsed date exists
	return Days{Range: r, Time: domain.Span{From: from, To: r.To.End(loc)}, Loc: loc}
}
