// Package domain contains the types of bookings and their rules: prices, local times, states and schedules. It is pure: it does no
// I/O and reads no clock. The caller provides the time.
package domain

import (
	"bytes"
	"fmt"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// BookingPrefix and the other types are the prefixes, for functions that are generic in the kind of id.
type (
	BookingPrefix = ids.BookingPrefix
	ServicePrefix = ids.ServicePrefix
	UnitPrefix    = ids.UnitPrefix
	PackagePrefix = ids.PackagePrefix
	HolidayPrefix struct{}
	ClosurePrefix struct{}
	SessionPrefix struct{}
)

// Prefix is "hr".
func (HolidayPrefix) Prefix() string { return "hr" }

// Prefix is "cl".
func (ClosurePrefix) Prefix() string { return "cl" }

// Prefix is "ses". It is not public.
func (SessionPrefix) Prefix() string { return "ses" }

// BookingID and the other types are the ids of this service's resources and of the resources that a booking references.
type (
	BookingID  = ids.Booking
	ServiceID  = ids.Service
	UnitID     = ids.Unit
	PackageID  = ids.Package
	HolidayID  = ids.ID[HolidayPrefix]
	ClosureID  = ids.ID[ClosurePrefix]
	SessionID  = ids.ID[SessionPrefix]
	LeadID     = ids.Lead
	QuoteID    = ids.Quote
	CustomerID = ids.Customer
)

// NewBookingID creates a new id.
func NewBookingID() BookingID { return ids.New[BookingPrefix]() }

// CompareIDs orders ids of one kind by the time of their creation.
func CompareIDs[P ids.Prefix](a, b ids.ID[P]) int {
	x, y := a.UUID(), b.UUID()
	return bytes.Compare(x[:], y[:])
}

// setIDs changes a list if one is given. A malformed id counts as unknown.
func setIDs[P ids.Prefix](to *[]ids.ID[P], given patch.Field[[]string], name, unknown string) error {
	texts := given.Pointer()
	if texts == nil {
		return nil
	}
	list := make([]ids.ID[P], len(*texts))
	var failed []apperr.FieldError
	for i, text := range *texts {
		var err error
		if list[i], err = ids.Parse[P](text); err != nil {
			failed = append(failed, apperr.FieldError{Field: fmt.Sprintf("%s.%d", name, i), Message: unknown})
		}
	}
	if len(failed) > 0 {
		return apperr.Fields(failed)
	}
	*to = list
	return nil
}
