package app

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// IntentInput contains the parameters of a create.
type IntentInput struct {
	Amount        *int64
	Currency      string
	CaptureMethod *string
	Description   *string
	ReceiptEmail  *string
	Metadata      map[string]string
}

// CreateIntent creates an intent with automatic payment methods.
func (u *Unit) CreateIntent(in IntentInput) (*domain.Intent, error) {
	if err := refuse(domain.CheckCurrency(in.Currency), domain.CheckAmount(*in.Amount, in.Currency)); err != nil {
		return nil, err
	}
	id := u.Tx.NewID(store.Intents)
	pi := &domain.Intent{
		ID: id, Object: "payment_intent", Amount: *in.Amount, AutomaticPaymentMethods: &domain.Automatic{AllowRedirects: "always", Enabled: true},
		CaptureMethod: domain.CaptureAutomatic, ClientSecret: id + "_secret_" + store.Random(25), ConfirmationMethod: "automatic",
		Created: u.now(), Currency: in.Currency, Description: given(in.Description), Livemode: u.Scope.Live, Metadata: in.Metadata,
		PaymentMethodTypes: []string{domain.TypeOfCard, domain.TypeOfBank}, ReceiptEmail: given(in.ReceiptEmail),
		Status: domain.RequiresPaymentMethod,
	}
	if in.CaptureMethod != nil {
		pi.CaptureMethod = *in.CaptureMethod
	}
	return pi, all(
		func() error { return u.putIntent(pi) },
		func() error { return u.emitIntent("created", pi) },
	)
}

func join(statuses []domain.Status) string {
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// CancelIntent cancels an intent and releases the authorized amount.
func (u *Unit) CancelIntent(id string) (*domain.Intent, error) {
	pi, err := u.Intent(id)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(domain.Cancelable, pi.Status) {
		return nil, domain.UnexpectedState(pi, fmt.Sprintf("You cannot cancel this PaymentIntent because it has a status of %s. Only a PaymentIntent with one of the following statuses may be canceled: %s.",
			pi.Status, join(domain.Cancelable)))
	}
	if pi.Status == domain.RequiresCapture {
		c, err := u.Charge(*pi.LatestCharge)
		if err == nil {
			err = u.release(pi, c, c.Amount)
		}
		if err == nil {
			err = u.emitCharge("refunded", c, map[string]any{"amount_refunded": 0, "refunded": false})
		}
		if err != nil {
			return nil, err
		}
	}
	at := u.now()
	pi.Status, pi.CanceledAt = domain.Canceled, &at
	pi.AmountCapturable, pi.NextAction = 0, nil
	return pi, all(
		func() error { return u.putIntent(pi) },
		func() error { return u.emitIntent("canceled", pi) },
	)
}
