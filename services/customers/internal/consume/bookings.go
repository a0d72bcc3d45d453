package consume

import (
	"context"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/customers/internal/app"
)

// Bookings handles the events of the bookings service.
type Bookings struct {
	Catalogue *app.Catalogue
	Bookings  *app.BookingProjection
}

// Handle is a kafkax.Handler. What cannot be read is poison; types that this service does not know pass.
func (h *Bookings) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("customers", e)
	if err != nil {
		return err
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	ctx = caller.With(ctx, from)
	switch e.GetType() {
	case "service.updated", "unit.updated", "package.updated":
		return h.catalogue(ctx, id, e)
	case "booking.created", "booking.updated", "booking.cancelled":
		b, err := booking(e)
		if err != nil {
			return err
		}
		return h.Bookings.ApplyEvent(ctx, id, b)
	default:
		return nil
	}
}
