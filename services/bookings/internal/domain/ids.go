// Package domain holds the nouns of bookings and their rules: prices, local times, states and schedules.
// It is pure: no I/O and no clock; the caller says what time it is.
package domain

import (
	"bytes"
	"fmt"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// BookingPrefix and the others are the prefixes, for functions that are generic in the kind of id.
type (
	BookingPrefix struct{}
	ServicePrefix struct{}
	UnitPrefix    struct{}
	PackagePrefix struct{}
	HolidayPrefix struct{}
	LeadPrefix    struct{}
	QuotePrefix   struct{}
)

// Prefix is "bk".
func (BookingPrefix) Prefix() string { return "bk" }

// Prefix is "srv".
func (ServicePrefix) Prefix() string { return "srv" }

// Prefix is "un".
func (UnitPrefix) Prefix() string { return "un" }

// Prefix is "pkg".
func (PackagePrefix) Prefix() string { return "pkg" }

// Prefix is "hr".
func (HolidayPrefix) Prefix() string { return "hr" }

// Prefix is "ld".
func (LeadPrefix) Prefix() string { return "ld" }

// Prefix is "qt".
func (QuotePrefix) Prefix() string { return "qt" }

// BookingID and the others are the ids of this service's resources, and of those that a booking names.
type (
	BookingID  = ids.ID[BookingPrefix]
	ServiceID  = ids.ID[ServicePrefix]
	UnitID     = ids.ID[UnitPrefix]
	PackageID  = ids.ID[PackagePrefix]
	HolidayID  = ids.ID[HolidayPrefix]
	LeadID     = ids.ID[LeadPrefix]
	QuoteID    = ids.ID[QuotePrefix]
	CustomerID = ids.Customer
)

// NewBookingID makes a fresh id.
func NewBookingID() BookingID { return ids.New[BookingPrefix]() }

// CompareIDs orders ids of one kind by the time of their making.
func CompareIDs[P ids.Prefix](a, b ids.ID[P]) int {
	x, y := a.UUID(), b.UUID()
	return bytes.Compare(x[:], y[:])
}

// setIDs changes a list when one is given. A malformed id is as good as unknown.
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
