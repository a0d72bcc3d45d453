package api

import (
	"encoding/json"
	"fmt"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

func fromBookingCreate(b api.BookingCreate) domain.Wish {
	w := domain.Wish{
		EventDate: b.EventDate, Start: change(b.EventStartTime), End: change(b.EventEndTime),
		StartsAt: change(b.StartsAt), EndsAt: change(b.EndsAt), EventType: change(b.EventType),
		HoldMinutes: change(b.HoldMinutes).Value,
		CustomerID:  change(b.CustomerId), ServiceID: change(b.ServiceId), UnitID: change(b.UnitId), PackageID: change(b.PackageId),
		GuestCount: change(b.GuestCount), Notes: change(b.Notes), Metadata: bag(b.Metadata),
	}
	if b.Status != nil {
		s := domain.Status(*b.Status)
		w.Status = &s
	}
	return w
}

func fromBookingUpdate(b api.BookingUpdate) domain.Wish {
	w := domain.Wish{
		EventDate: b.EventDate, Start: change(b.EventStartTime), End: change(b.EventEndTime), EventType: change(b.EventType),
		CustomerID: change(b.CustomerId), ServiceID: change(b.ServiceId), UnitID: change(b.UnitId), PackageID: change(b.PackageId),
		GuestCount: change(b.GuestCount), Notes: change(b.Notes), Metadata: bag(b.Metadata),
	}
	if b.Status != nil {
		s := domain.Status(*b.Status)
		if *b.Status == api.BookingUpdateStatusCanceled {
			s = domain.Cancelled
		}
		w.Status = &s
	}
	return w
}

func change[T any](n nullable.Nullable[T]) domain.Change[T] {
	c := domain.Change[T]{Given: n.IsSpecified()}
	if v, err := n.Get(); err == nil {
		c.Value = &v
	}
	return c
}

// bag is metadata as the door hands it over, compact; null and an empty one clear it.
func bag(n nullable.Nullable[api.Metadata]) domain.Change[json.RawMessage] {
	c := domain.Change[json.RawMessage]{Given: n.IsSpecified()}
	v, _ := n.Get() // nil when it is null or absent
	switch string(v) {
	case "", "{}", "[]":
	default:
		c.Value = &v
	}
	return c
}

// set changes to when a value is given.
func set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

// setOrNull changes to when a value or null is given.
func setOrNull[T any](to **T, given nullable.Nullable[T]) {
	if c := change(given); c.Given {
		*to = c.Value
	}
}

// setIDs changes a list when one is given. A malformed id is as good as unknown.
func setIDs[P ids.Prefix](to *[]ids.ID[P], given *[]string, name, unknown string) error {
	if given == nil {
		return nil
	}
	list := make([]ids.ID[P], len(*given))
	var failed []apperr.FieldError
	for i, text := range *given {
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
