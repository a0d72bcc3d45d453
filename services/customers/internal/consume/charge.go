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
type Charges struct {
	App         *app.Charges
	CreditNotes *app.CreditNotes
}

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores other types than those about a
// payment intent or a refund, intents without a charge, and refunds without a credit note.
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
	case "payment.succeeded", "payment.failed", "payment_intent.updated", "refund.updated":
	default:
		return nil
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	if e.GetType() == "refund.updated" {
		note, r, err := noteRefund(e)
		if err != nil || note.IsZero() {
			return err
		}
		return h.CreditNotes.ApplyEvent(caller.With(ctx, from), id, note, r)
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

// noteRefund reads the state of the refund of a credit note from an event. The id is zero if no credit note created the refund.
func noteRefund(e *eventsv1.Event) (note domain.CreditNoteID, r domain.NoteRefund, err error) {
	var body struct {
		ID          string              `json:"id"`
		Status      string              `json:"status"`
		CreditNote  domain.CreditNoteID `json:"credit_note_id"` // null: none
		Allocations []struct {
			Intent string `json:"payment_intent_id"`
			Amount int64  `json:"amount"`
			Status string `json:"status"`
		} `json:"allocations"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return note, r, kafkax.Poison(fmt.Errorf("refund body: %w", err))
	}
	if body.ID != e.GetObjectId() || body.Status == "" {
		return note, r, kafkax.Poison(fmt.Errorf("refund %q of the event about %q cannot be read", body.ID, e.GetObjectId()))
	}
	r = domain.NoteRefund{ID: body.ID, Status: body.Status, Shown: true, Version: e.GetResourceVersion()}
	for _, a := range body.Allocations {
		r.Parts = append(r.Parts, domain.NoteRefundPart{Charge: a.Intent, Amount: a.Amount, Status: a.Status})
	}
	return body.CreditNote, r, nil
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
