package consume

import (
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/domain"
)

// manualRefund reads the refund outside the payment gateway from an event about a credit note. Its amount is 0 if there is none, or no
// booking. Events of payments contain the refunds through the gateway. It reads no personal data.
func manualRefund(e *eventsv1.Event) (domain.ManualRefund, error) {
	var body struct {
		ID        string               `json:"id"`
		InvoiceID string               `json:"invoice_id"`
		BookingID *string              `json:"booking_id"`
		Refund    api.CreditNoteRefund `json:"refund"`
		Amount    api.Money            `json:"refund_amount"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.ManualRefund{}, kafkax.Poison(fmt.Errorf("credit note body: %w", err))
	}
	if body.ID == "" || body.ID != e.GetObjectId() || body.Amount.Amount < 0 || body.Amount.Currency == "" {
		return domain.ManualRefund{}, kafkax.Poison(fmt.Errorf("credit note %q in the event of %q", body.ID, e.GetObjectId()))
	}
	if body.Refund != api.CreditNoteRefundManual || body.BookingID == nil {
		return domain.ManualRefund{}, nil
	}
	booking, err := ids.Parse[ids.BookingPrefix](*body.BookingID)
	if err != nil {
		return domain.ManualRefund{}, kafkax.Poison(fmt.Errorf("booking id %q: %w", *body.BookingID, err))
	}
	return domain.ManualRefund{
		ID: body.ID, Booking: booking, Invoice: body.InvoiceID, Amount: money.Amount{Minor: body.Amount.Amount, Currency: body.Amount.Currency},
	}, nil
}
