package api

import (
	"encoding/json"

	"github.com/oapi-codegen/nullable"

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

// bag is metadata as it was sent; null and [] clear it.
func bag(n nullable.Nullable[api.Metadata]) domain.Change[json.RawMessage] {
	c := change(n)
	if c.Value == nil {
		return domain.Change[json.RawMessage]{Given: c.Given}
	}
	var list []string
	if err := json.Unmarshal(*c.Value, &list); err == nil && len(list) == 0 {
		return domain.Change[json.RawMessage]{Given: true}
	}
	return domain.Change[json.RawMessage]{Given: true, Value: c.Value}
}
