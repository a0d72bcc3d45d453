package consume

import (
	"context"
	"slices"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/app"
)

// Bookings handles the events of the bookings service.
type Bookings struct {
	Catalogue *app.Catalogue
	Bookings  *app.BookingProjection
}

// HandleBatch applies the booking events of a batch in one transaction. It returns kafkax.ErrSeparate if the batch contains a
// change of the catalogue.
func (h *Bookings) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	list := make([]app.BookingEvent, 0, len(batch))
	for _, m := range batch {
		e, id, err := decode(m)
		if err != nil {
			return err
		}
		if ofCatalogue(e) {
			return kafkax.ErrSeparate
		}
		if list, err = appendBooking(list, e, id); err != nil {
			return err
		}
	}
	return h.Bookings.ApplyEvents(ctx, list)
}

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores types that this service does not
// know.
func (h *Bookings) Handle(ctx context.Context, m kafkax.Message) error {
	e, id, err := decode(m)
	if err != nil {
		return err
	}
	if !ofCatalogue(e) {
		list, err := appendBooking(nil, e, id)
		if err != nil {
			return err
		}
		return h.Bookings.ApplyEvents(ctx, list)
	}
	from, err := outbox.Caller("customers", e)
	if err != nil {
		return err
	}
	return h.catalogue(caller.With(ctx, from), id.ID, e)
}

// appendBooking appends the booking state that an event contains. It ignores other events.
func appendBooking(list []app.BookingEvent, e *eventsv1.Event, id inbox.Event) ([]app.BookingEvent, error) {
	if !ofBooking(e) {
		return list, nil
	}
	b, err := booking(e)
	if err != nil {
		return nil, err
	}
	return append(list, app.BookingEvent{Event: id, Booking: b}), nil
}

func ofCatalogue(e *eventsv1.Event) bool {
	return slices.Contains([]string{"service.updated", "unit.updated", "package.updated"}, e.GetType())
}

func ofBooking(e *eventsv1.Event) bool {
	return slices.Contains([]string{"booking.created", "booking.updated", "booking.cancelled"}, e.GetType())
}

// decode reads a message, and the identity of its event with tenant and mode.
func decode(m kafkax.Message) (*eventsv1.Event, inbox.Event, error) {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return nil, inbox.Event{}, err
	}
	id, err := inbox.Of(e)
	if err != nil {
		return nil, inbox.Event{}, err
	}
	return e, id, nil
}
