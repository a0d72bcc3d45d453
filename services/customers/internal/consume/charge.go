package consume

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
)

// Charges handles the events of the payments service.
type Charges struct{ App *app.Charges }

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores other types than those about a
// payment intent, and intents without a charge.
func (h *Charges) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("customers", e)
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
	c, err := charge(e)
	if err != nil {
		return kafkax.Poison(err)
	}
	if c.Amount.Minor == 0 {
		return nil
	}
	return h.App.ApplyEvent(caller.With(ctx, from), id, c)
}

// charge reads the state of a payment intent from an event. It reads no personal data.
func charge(e *eventsv1.Event) (domain.Charge, error) {
	var body struct {
		ID       string           `json:"id"`
		Booking  string           `json:"booking_id"`
		Invoice  domain.InvoiceID `json:"invoice_id"` // null: none
		Currency string           `json:"currency"`
		Received int64            `json:"amount_received"`
		Refunded int64            `json:"amount_refunded"`
		Disputed bool             `json:"disputed"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Charge{}, fmt.Errorf("payment intent body: %w", err)
	}
	booking, err := ids.Parse[ids.BookingPrefix](body.Booking)
	if err != nil || body.ID != e.GetObjectId() || body.Currency == "" || body.Received < 0 || body.Refunded < 0 {
		return domain.Charge{}, fmt.Errorf("payment intent %q of the event about %q cannot be read", body.ID, e.GetObjectId())
	}
	return domain.Charge{
		ID: body.ID, Booking: booking, Invoice: body.Invoice, Amount: money.Amount{Minor: body.Received, Currency: body.Currency},
		ChargeState: domain.ChargeState{Refunded: body.Refunded, Disputed: body.Disputed, Version: e.GetResourceVersion()},
	}, nil
}
