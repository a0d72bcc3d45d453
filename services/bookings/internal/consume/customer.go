// Package consume is the door for Kafka: one handler per topic, which decodes an event and calls one verb.
package consume

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

// Handlers are those of the topics that the service reads, by topic.
type Handlers map[string]kafkax.Handler

// New makes the handlers.
func New(customers *app.Customers, clocks *app.Clocks) Handlers {
	return Handlers{
		"customers": (&Customers{App: customers}).Handle,
		"identity":  (&Tenants{App: clocks}).Handle,
	}
}

// Handle is a kafkax.Handler that hands each message to its topic's.
func (h Handlers) Handle(ctx context.Context, m kafkax.Message) error {
	handle := h[m.Topic]
	if handle == nil {
		return kafkax.Poison(fmt.Errorf("topic %q has no handler", m.Topic))
	}
	return handle(ctx, m)
}

// Customers handles the events of the customers service.
type Customers struct{ App *app.Customers }

// Handle is a kafkax.Handler. What cannot be read is poison; types that are not about a customer's state pass.
func (h *Customers) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("bookings", e)
	if err != nil {
		return err
	}
	c, known, err := customer(e)
	if err != nil || !known {
		return err
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	return h.App.ApplyEvent(caller.With(ctx, from), id, c)
}

// customer reads what the event says of a customer; false when it says nothing.
func customer(e *eventsv1.Event) (domain.Customer, bool, error) {
	id, err := ids.Parse[ids.CustomerPrefix](e.GetObjectId())
	if err != nil {
		return domain.Customer{}, false, kafkax.Poison(fmt.Errorf("customer id %q: %w", e.GetObjectId(), err))
	}
	c := domain.Customer{ID: id, Version: e.GetResourceVersion()}
	switch e.GetType() {
	case "customer.created", "customer.updated":
		var body struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(e.GetObject(), &body); err != nil {
			return domain.Customer{}, false, kafkax.Poison(fmt.Errorf("customer body: %w", err))
		}
		c.Name = body.Name
	case "customer.erased":
		c.Erased = true
	default:
		return domain.Customer{}, false, nil
	}
	return c, true, nil
}
