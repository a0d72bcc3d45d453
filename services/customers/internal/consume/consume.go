// Package consume handles Kafka messages. It has one handler per topic, which decodes an event and calls one use case.
package consume

import (
	"context"
	"fmt"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/app"
)

// Handlers contains the handler of each topic that the service reads.
type Handlers struct {
	Topics   map[string]kafkax.Handler
	bookings *Bookings
}

// New returns the handlers.
func New(
	catalogue *app.Catalogue, bookings *app.BookingProjection, accounts *app.Accounts, notes *app.CreditNotes, clocks *testclock.Events,
) Handlers {
	b := &Bookings{Catalogue: catalogue, Bookings: bookings}
	return Handlers{
		Topics: map[string]kafkax.Handler{
			"bookings": b.Handle, "identity": clocks.Handle, "payments": (&Payments{Accounts: accounts, CreditNotes: notes}).Handle,
		},
		bookings: b,
	}
}

// HandleBatch applies a batch of one topic in a single transaction, or returns an error. After an error, Handle gets the messages
// one by one.
func (h Handlers) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	if batch[0].Topic != "bookings" {
		return kafkax.ErrSeparate
	}
	return h.bookings.HandleBatch(ctx, batch)
}

// Handle is a kafkax.Handler that passes each message to the handler of its topic.
func (h Handlers) Handle(ctx context.Context, m kafkax.Message) error {
	handle := h.Topics[m.Topic]
	if handle == nil {
		return kafkax.Poison(fmt.Errorf("topic %q has no handler", m.Topic))
	}
	return handle(ctx, m)
}
