// Package consume handles Kafka messages: it decodes an event and calls one use case.
package consume

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

// Handlers contains the handlers of the topics that the service reads.
type Handlers struct {
	Bookings *app.BookingProjection
	Eraser   *app.Eraser
}

// Topics returns the handlers by topic.
func (h Handlers) Topics() map[string]kafkax.Handler {
	return map[string]kafkax.Handler{"bookings": h.booking, "customers": h.customer}
}

// Handle is a kafkax.Handler that passes each message to the handler of its topic. A message that cannot be read is a poison
// message. Handle ignores types that this service does not know.
func (h Handlers) Handle(ctx context.Context, m kafkax.Message) error {
	handle := h.Topics()[m.Topic]
	if handle == nil {
		return kafkax.Poison(fmt.Errorf("topic %q has no handler", m.Topic))
	}
	return handle(ctx, m)
}

// HandleBatch applies the booking events of a batch in one transaction. It handles erasures one by one.
func (h Handlers) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	if batch[0].Topic != "bookings" {
		return kafkax.ErrSeparate
	}
	list := make([]app.BookingEvent, 0, len(batch))
	for _, m := range batch {
		e, err := outbox.Decode(m.Value)
		if err != nil {
			return err
		}
		id, err := inbox.Of(e)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(e.GetType(), "booking.") {
			continue
		}
		b, err := booking(e)
		if err != nil {
			return err
		}
		list = append(list, app.BookingEvent{Event: id, Booking: b})
	}
	return h.Bookings.ApplyEvents(ctx, list)
}

func (h Handlers) booking(ctx context.Context, m kafkax.Message) error {
	return h.HandleBatch(ctx, []kafkax.Message{m})
}

// customer erases the data of an erased customer.
func (h Handlers) customer(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("payments", e)
	if err != nil || e.GetType() != "customer.erased" {
		return err
	}
	event, err := inbox.Of(e)
	if err != nil {
		return err
	}
	id, err := ids.Parse[ids.CustomerPrefix](e.GetObjectId())
	if err != nil {
		return kafkax.Poison(fmt.Errorf("customer.erased of %q: %w", e.GetObjectId(), err))
	}
	return h.Eraser.EraseCustomer(caller.With(ctx, from), event.ID, id)
}

// booking reads the state of a booking from an event, whose object is the GET body.
func booking(e *eventsv1.Event) (domain.Booking, error) {
	id, err := ids.Parse[ids.BookingPrefix](e.GetObjectId())
	if err != nil {
		return domain.Booking{}, kafkax.Poison(fmt.Errorf("booking id %q: %w", e.GetObjectId(), err))
	}
	var body struct {
		Status     string            `json:"status"`
		CustomerID domain.CustomerID `json:"customer_id"` // null: none
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Booking{}, kafkax.Poison(fmt.Errorf("booking body: %w", err))
	}
	if body.Status == "" {
		return domain.Booking{}, kafkax.Poison(fmt.Errorf("booking body of %s has no status", id))
	}
	return domain.Booking{ID: id, CustomerID: body.CustomerID, Status: body.Status, Version: e.GetResourceVersion()}, nil
}
