package consume

import (
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/proto/api"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/domain"
)

// invoice reads an invoice from an event: its booking and its amounts. It reads no personal data.
func invoice(e *eventsv1.Event) (domain.Invoice, error) {
	var body struct {
		ID        string            `json:"id"`
		BookingID *string           `json:"booking_id"`
		Status    api.InvoiceStatus `json:"status"`
		Kind      api.InvoiceKind   `json:"kind"`
		Total     api.Money         `json:"total_amount"`
		Due       api.Money         `json:"amount_due"`
		Paid      api.Money         `json:"amount_paid"`
		Credited  api.Money         `json:"amount_credited"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Invoice{}, kafkax.Poison(fmt.Errorf("invoice body: %w", err))
	}
	if body.ID == "" || body.ID != e.GetObjectId() {
		return domain.Invoice{}, kafkax.Poison(fmt.Errorf("invoice id %q in the event of %q", body.ID, e.GetObjectId()))
	}
	in := domain.Invoice{
		ID: body.ID, Version: e.GetResourceVersion(), Currency: body.Total.Currency, Deposit: body.Kind == api.Deposit,
		Opened: body.Status != api.InvoiceStatusDraft && body.Status != api.InvoiceStatusVoid,
		Total:  body.Total.Amount, Due: body.Due.Amount, Paid: body.Paid.Amount, Credited: body.Credited.Amount,
	}
	if body.BookingID == nil {
		return in, nil
	}
	id, err := ids.Parse[ids.BookingPrefix](*body.BookingID)
	if err != nil {
		return domain.Invoice{}, kafkax.Poison(fmt.Errorf("booking id %q: %w", *body.BookingID, err))
	}
	if in.Booking = id; in.Currency == "" || min(in.Total, in.Due, in.Paid, in.Credited) < 0 {
		return domain.Invoice{}, kafkax.Poison(fmt.Errorf("amounts of the invoice %s: %+v", in.ID, in))
	}
	return in, nil
}
