// Package consume handles Kafka messages. It has one handler per topic, which decodes an event and calls one use case.
package consume

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/tenantstate"
	"holdfast.dev/libs/testclock"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

// Handlers maps the topics that the service reads to their handlers.
type Handlers map[string]kafkax.Handler

// New creates the handlers.
func New(customers *app.Customers, payments *app.Payments, clocks *testclock.Events, states *tenantstate.Events) Handlers {
	return Handlers{
		"customers": (&Customers{App: customers, Payments: payments}).Handle,
		"identity": func(ctx context.Context, m kafkax.Message) error {
			if err := clocks.Handle(ctx, m); err != nil {
				return err
			}
			return states.Handle(ctx, m)
		},
		"payments": (&Payments{App: payments}).Handle,
	}
}

// Handle is a kafkax.Handler that passes each message to the handler of its topic.
func (h Handlers) Handle(ctx context.Context, m kafkax.Message) error {
	handle := h[m.Topic]
	if handle == nil {
		return kafkax.Poison(fmt.Errorf("topic %q has no handler", m.Topic))
	}
	return handle(ctx, m)
}

// Customers handles the events of the customers service.
type Customers struct {
	App      *app.Customers
	Payments *app.Payments
}

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores types that are not about the state
// of a customer or an invoice.
func (h *Customers) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("bookings", e)
	if err != nil {
		return err
	}
	ctx = caller.With(ctx, from)
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	switch e.GetType() {
	case "customer.created", "customer.updated", "customer.erased":
		c, err := customer(e)
		if err != nil {
			return err
		}
		return h.App.ApplyEvent(ctx, id, c)
	case "invoice.created", "invoice.updated", "invoice.paid":
		in, err := invoice(e)
		if err != nil {
			return err
		}
		return h.Payments.ApplyInvoice(ctx, id, in)
	case "invoice.erased":
		var body struct{ Deleted bool }
		if err := json.Unmarshal(e.GetObject(), &body); err != nil {
			return kafkax.Poison(fmt.Errorf("erased invoice: %w", err))
		}
		if !body.Deleted {
			return nil
		}
		return h.Payments.ApplyInvoice(ctx, id, domain.Invoice{ID: e.GetObjectId(), Version: e.GetResourceVersion()})
	default:
		return nil
	}
}

// customer reads the customer from an event.
func customer(e *eventsv1.Event) (domain.Customer, error) {
	id, err := ids.Parse[ids.CustomerPrefix](e.GetObjectId())
	if err != nil {
		return domain.Customer{}, kafkax.Poison(fmt.Errorf("customer id %q: %w", e.GetObjectId(), err))
	}
	c := domain.Customer{ID: id, Version: e.GetResourceVersion()}
	if e.GetType() == "customer.erased" {
		c.Erased = true
		return c, nil
	}
	var body struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Customer{}, kafkax.Poison(fmt.Errorf("customer body: %w", err))
	}
	c.Name = body.Name
	return c, nil
}
