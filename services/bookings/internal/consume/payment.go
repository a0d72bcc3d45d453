package consume

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/proto/api"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

// Payments handles the events of the payments service.
type Payments struct{ App *app.Payments }

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores types that are not about the account of
// a booking.
func (h *Payments) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("bookings", e)
	if err != nil {
		return err
	}
	if e.GetType() != "account.updated" || !strings.HasPrefix(e.GetObjectId(), domain.BookingPrefix{}.Prefix()+"_") {
		return nil
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	a, err := account(e)
	if err != nil {
		return kafkax.Poison(err)
	}
	return h.App.ApplyAccount(caller.With(ctx, from), id, a)
}

// account reads the account of a booking from an event. It contains no personal data.
func account(e *eventsv1.Event) (domain.Account, error) {
	var body internalapi.Account
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Account{}, fmt.Errorf("account body: %w", err)
	}
	booking, err := ids.Parse[ids.BookingPrefix](body.ID)
	if err != nil || body.ID != e.GetObjectId() || body.Currency == "" || body.Received < 0 || body.Returned < 0 {
		return domain.Account{}, fmt.Errorf("account %q of the event about %q cannot be read", body.ID, e.GetObjectId())
	}
	a := domain.Account{
		Booking: booking, Currency: body.Currency, Received: body.Received, Returned: body.Returned, Disputed: body.Disputed, Version: body.Version,
		Payments: make([]domain.BookingPayment, len(body.Entries)),
	}
	for i, entry := range body.Entries {
		if a.Payments[i], err = payment(entry, body.Currency); err != nil {
			return domain.Account{}, err
		}
	}
	return a, nil
}

// payment returns an entry of an account as it is listed. Money handed back is a payment of 0 that is refunded.
func payment(e internalapi.AccountEntry, currency string) (domain.BookingPayment, error) {
	p := domain.BookingPayment{
		ID: e.ID, Source: string(api.PaymentSourceManual), Amount: money.Amount{Minor: e.Amount, Currency: currency}, Refunded: e.Returned,
		Disputed: e.Disputed, PaidAt: &e.At, ReversedAt: e.ReversedAt, Version: e.Version,
	}
	if e.InvoiceID != nil {
		p.InvoiceID = *e.InvoiceID
	}
	switch e.Kind {
	case "card":
		p.Source = string(api.PaymentSourceGateway)
	case "return":
		p.Amount.Minor, p.Refunded = 0, e.Amount
	}
	if p.ID == "" || e.Amount < 0 || e.Returned < 0 {
		return p, fmt.Errorf("entry %+v of an account", e)
	}
	return p, nil
}
