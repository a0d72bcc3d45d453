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

// invoice reads an invoice from an event: its booking and its payments. It reads no personal data.
func invoice(e *eventsv1.Event) (domain.Invoice, error) {
	var body struct {
		ID        string               `json:"id"`
		BookingID *string              `json:"booking_id"`
		Payments  []api.InvoicePayment `json:"payments"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Invoice{}, kafkax.Poison(fmt.Errorf("invoice body: %w", err))
	}
	if body.ID == "" || body.ID != e.GetObjectId() {
		return domain.Invoice{}, kafkax.Poison(fmt.Errorf("invoice id %q in the event of %q", body.ID, e.GetObjectId()))
	}
	in := domain.Invoice{ID: body.ID, Version: e.GetResourceVersion()}
	if body.BookingID != nil {
		id, err := ids.Parse[ids.BookingPrefix](*body.BookingID)
		if err != nil {
			return domain.Invoice{}, kafkax.Poison(fmt.Errorf("booking id %q: %w", *body.BookingID, err))
		}
		in.Booking = id
	}
	for _, p := range body.Payments {
		if p.Source == api.PaymentSourceGateway {
			continue // its own event contains it
		}
		payment := domain.Payment{ID: p.Id, Amount: money.Amount{Minor: p.Amount.Amount, Currency: p.Amount.Currency}}
		if p.Id == "" || payment.Amount.Minor < 0 || payment.Amount.Currency == "" {
			return domain.Invoice{}, kafkax.Poison(fmt.Errorf("payment %q of the invoice %s: %+v", p.Id, in.ID, payment.Amount))
		}
		if !p.PaidAt.IsZero() {
			payment.PaidAt = &p.PaidAt
		}
		if at, err := p.ReversedAt.Get(); err == nil {
			payment.ReversedAt = &at
		}
		in.Payments = append(in.Payments, payment)
	}
	return in, nil
}
