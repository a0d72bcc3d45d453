package api

import (
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

func fromBookingCreate(b api.BookingCreate) domain.BookingInput {
	return domain.BookingInput{
		EventDate: patch.FromPointer(b.EventDate), Start: patch.FromNullable(b.EventStartTime), End: patch.FromNullable(b.EventEndTime),
		StartsAt: patch.FromNullable(b.StartsAt), EndsAt: patch.FromNullable(b.EndsAt), EventType: patch.FromNullable(b.EventType),
		Status: patch.FromPointer((*domain.Status)(b.Status)), HoldMinutes: patch.FromNullable(b.HoldMinutes),
		CustomerID: patch.FromNullable(b.CustomerId), ServiceID: patch.FromNullable(b.ServiceId),
		UnitID: patch.FromNullable(b.UnitId), PackageID: patch.FromNullable(b.PackageId),
		GuestCount: patch.FromNullable(b.GuestCount), Exclusive: b.Exclusive != nil && *b.Exclusive,
		Notes: patch.FromNullable(b.Notes), Metadata: patch.FromNullable(b.Metadata),
	}
}

func fromBookingUpdate(b api.BookingUpdate) domain.BookingInput {
	in := domain.BookingInput{
		EventDate: patch.FromPointer(b.EventDate), Start: patch.FromNullable(b.EventStartTime), End: patch.FromNullable(b.EventEndTime),
		StartsAt: patch.FromNullable(b.StartsAt), EndsAt: patch.FromNullable(b.EndsAt),
		EventType: patch.FromNullable(b.EventType), Status: patch.FromPointer((*domain.Status)(b.Status)),
		CustomerID: patch.FromNullable(b.CustomerId), ServiceID: patch.FromNullable(b.ServiceId),
		UnitID: patch.FromNullable(b.UnitId), PackageID: patch.FromNullable(b.PackageId),
		GuestCount: patch.FromNullable(b.GuestCount), Notes: patch.FromNullable(b.Notes), Metadata: patch.FromNullable(b.Metadata),
	}
	if b.Status != nil && *b.Status == api.BookingUpdateStatusCanceled {
		in.Status = patch.Value(domain.Cancelled)
	}
	return in
}

func fromBookingCancel(b api.BookingCancel) *app.Write {
	return app.Cancellation(patch.FromNullable(b.Reason).Pointer())
}
