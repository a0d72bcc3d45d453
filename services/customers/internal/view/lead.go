package view

import (
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// Lead returns the public body of a lead in the caller's mode.
func Lead(l domain.Lead, mode api.Mode) api.Lead {
	return api.Lead{
		Id:                 l.ID.String(),
		Object:             api.LeadObjectLead,
		Status:             api.LeadStatus(l.Status),
		Mode:               mode,
		Version:            l.Version,
		Source:             api.OrNull(l.Source),
		FirstName:          l.FirstName,
		LastName:           api.OrNull(l.LastName),
		Email:              api.OrNull(l.Email),
		Phone:              api.OrNull(l.Phone),
		Company:            api.OrNull(l.Company),
		EventType:          api.OrNull(l.EventType),
		EventDate:          timeOrNull(l.EventAt),
		EventLocalDate:     dateOrNull(l.EventDay),
		GuestCount:         api.OrNull(l.GuestCount),
		Budget:             amountOrNull(l.Budget),
		Message:            api.OrNull(l.Message),
		ServiceId:          idOrNull(l.ServiceID),
		UnitId:             idOrNull(l.UnitID),
		PackageId:          idOrNull(l.PackageID),
		CustomerId:         idOrNull(l.CustomerID),
		ConvertedBookingId: idOrNull(l.BookingID),
		QuoteIds:           texts(l.QuoteIDs),
		LostReason:         api.OrNull(l.LostReason),
		Metadata:           orEmpty(l.Metadata),
		CreatedAt:          l.CreatedAt.UTC(),
		UpdatedAt:          l.UpdatedAt.UTC(),
		ConvertedAt:        timeOrNull(l.ConvertedAt),
	}
}

// BookingOfLead returns the body of POST /bookings for a lead that is being converted. It uses the given values, and the lead's
// values for the others.
func BookingOfLead(l domain.Lead, in api.LeadBooking, customer domain.CustomerID) (json.RawMessage, error) {
	b := api.BookingCreate{
		CustomerId: idOrNull(customer),
		EventDate:  in.EventDate, EventStartTime: in.EventStartTime, EventEndTime: in.EventEndTime,
		StartsAt: in.StartsAt, EndsAt: in.EndsAt, EventType: or(in.EventType, l.EventType),
		Status: in.Status, HoldMinutes: in.HoldMinutes,
		ServiceId: in.ServiceId, UnitId: orID(in.UnitId, l.UnitID), PackageId: orID(in.PackageId, l.PackageID),
		GuestCount: or(in.GuestCount, l.GuestCount), Notes: in.Notes, Metadata: in.Metadata,
	}
	if !in.PackageId.IsSpecified() { // a given package determines the service
		b.ServiceId = orID(in.ServiceId, l.ServiceID)
	}
	if _, err := in.StartsAt.Get(); err != nil && b.EventDate == nil && l.EventAt != nil {
		b.EventDate = new(l.EventAt.UTC().Format(time.RFC3339Nano))
	}
	return contract.Encode(b)
}

// or returns the given value, or else the lead's value.
func or[T any](given nullable.Nullable[T], own *T) nullable.Nullable[T] {
	if given.IsSpecified() || own == nil {
		return given
	}
	return nullable.NewNullableWithValue(*own)
}

// orID is or for an id.
func orID[P ids.Prefix](given nullable.Nullable[string], own ids.ID[P]) nullable.Nullable[string] {
	if given.IsSpecified() || own.IsZero() {
		return given
	}
	return idOrNull(own)
}

// ErasedLead returns the object of the event lead.erased.
func ErasedLead(id string) Erased {
	return Erased{ID: id, Object: string(api.LeadObjectLead), Erased: true}
}
