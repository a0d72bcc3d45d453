package domain

import (
	"fmt"

	"holdfast.dev/libs/apperr"
)

// Errors that the API returns.
var (
	ErrBookingNotFound  = apperr.New(apperr.NotFound, "booking_not_found", "Booking not found.")
	ErrServiceNotFound  = apperr.New(apperr.NotFound, "service_not_found", "Service not found.")
	ErrUnitNotFound     = apperr.New(apperr.NotFound, "unit_not_found", "Unit not found.")
	ErrPackageNotFound  = apperr.New(apperr.NotFound, "package_not_found", "Package not found.")
	ErrHolidayNotFound  = apperr.New(apperr.NotFound, "holiday_rule_not_found", "Holiday rule not found.")
	ErrCustomerNotFound = apperr.New(apperr.NotFound, "customer_not_found", "Customer not found.")
	ErrClosureNotFound  = apperr.New(apperr.NotFound, "closure_not_found", "Closure not found.")
	ErrFeedNotFound     = apperr.New(apperr.NotFound, "calendar_feed_not_found", "Calendar feed not found.")
	ErrFeedUnit         = apperr.Field("unit_id", "Unit not found.")
	ErrSlotUnavailable  = apperr.New(apperr.Conflict, "slot_unavailable", "The unit is taken at that time.")
	ErrClosed           = apperr.New(apperr.Conflict, "slot_unavailable", "The unit is closed at that time.")
	ErrNotOffered       = apperr.Field("event_start_time", "Must be the start of a slot that availability offers for the unit, and end with it.")
	ErrTransition       = apperr.New(apperr.Invalid, "invalid_status_transition", "The booking's status does not allow this.").WithField("status")
	ErrScope            = apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks the scope read:customers.").
				WithHeader("WWW-Authenticate", `Bearer error="insufficient_scope", scope="read:customers"`)
	ErrPriceTooHigh = apperr.Field("package_id", "The price on that day exceeds the maximum amount, %d.", int64(MaxAmount))
)

// NoSeats returns the error of a slot with too few seats, which states how many are left.
func NoSeats(left int) *apperr.Error {
	message := "The slot has no seats left."
	if left > 0 {
		message = fmt.Sprintf("The slot does not have that many seats. Seats left: %d.", left)
	}
	return ErrSlotUnavailable.WithMessage("%s", message).WithExtra("seats_available", left)
}

func field(name, format string, args ...any) *apperr.Error {
	return apperr.Field(name, format, args...)
}

// noTransition returns an error that names both states of a transition that is not allowed.
func noTransition(from, to Status) error {
	return ErrTransition.WithMessage("A booking that is %s cannot become %s.", from, to).WithField("status")
}
