// Package consume handles the messages of Kafka: one handler per topic, which decodes an event and calls one use case.
package consume

import (
	"context"
	"fmt"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/app"
)

// Handlers are those of the topics that the service reads, by topic.
type Handlers map[string]kafkax.Handler

// New makes the handlers.
func New(catalogue *app.Catalogue, bookings *app.BookingProjection, clocks *testclock.Events) Handlers {
	return Handlers{
		"bookings": (&Bookings{Catalogue: catalogue, Bookings: bookings}).Handle,
		"identity": clocks.Handle,
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
