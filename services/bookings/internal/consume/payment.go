package consume

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

// Payments handles the events of the payments service.
type Payments struct{ App *app.Payments }

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores types that are not about a payment
// intent.
func (h *Payments) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("bookings", e)
	if err != nil {
		return err
	}
	switch e.GetType() {
	case "payment.succeeded", "payment.failed", "payment_intent.updated":
	default:
		return nil
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	p, err := gatewayPayment(e)
	if err != nil {
		return kafkax.Poison(err)
	}
	if p.Amount.Minor == 0 {
		return nil // nothing was charged yet
	}
	return h.App.ApplyGateway(caller.With(ctx, from), id, p)
}

// gatewayPayment reads a payment intent from an event. It reads no personal data.
func gatewayPayment(e *eventsv1.Event) (domain.GatewayPayment, error) {
	var body struct {
		ID          string     `json:"id"`
		Booking     string     `json:"booking_id"`
		Currency    string     `json:"currency"`
		Received    int64      `json:"amount_received"`
		Refunded    int64      `json:"amount_refunded"`
		Invoice     string     `json:"invoice_id"` // null: none
		Disputed    bool       `json:"disputed"`
		SucceededAt *time.Time `json:"succeeded_at"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.GatewayPayment{}, fmt.Errorf("payment intent body: %w", err)
	}
	booking, err := ids.Parse[ids.BookingPrefix](body.Booking)
	if err != nil || body.ID != e.GetObjectId() || body.Currency == "" || body.Received < 0 || body.Refunded < 0 {
		return domain.GatewayPayment{}, fmt.Errorf("payment intent %q of the event about %q cannot be read", body.ID, e.GetObjectId())
	}
	return domain.GatewayPayment{
		ID: body.ID, Booking: booking, Amount: money.Amount{Minor: body.Received, Currency: body.Currency}, Refunded: body.Refunded,
		Invoice: body.Invoice, Disputed: body.Disputed, PaidAt: body.SucceededAt, Version: e.GetResourceVersion(),
	}, nil
}
