package app

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/form"
	"holdfast.dev/services/local/stripe/internal/store"
)

// IntentInput contains the parameters of a create or an update. A nil field stays unchanged.
type IntentInput struct {
	Amount         *int64
	Currency       *string
	Customer       *string
	Description    *string
	ReceiptEmail   *string
	Descriptor     *string
	Suffix         *string
	FutureUsage    *string
	TransferGroup  *string
	CaptureMethod  *string
	Metadata       *form.Metadata
	Types          []string // payment_method_types; empty: automatic
	Automatic      *bool
	AllowRedirects string
	Confirmation   ConfirmInput
	Confirm        bool
}

// CreateIntent creates an intent, and confirms it if the input requests that.
func (u *Unit) CreateIntent(in IntentInput) (*domain.Intent, error) {
	if err := refuse(domain.CheckCurrency(*in.Currency)); err != nil {
		return nil, err
	}
	if err := refuse(domain.CheckAmount(*in.Amount, *in.Currency), checkTypes(in.Types)); err != nil {
		return nil, err
	}
	id := u.Tx.NewID(store.Intents)
	pi := &domain.Intent{
		ID: id, Object: "payment_intent", CaptureMethod: domain.CaptureAutomatic, ClientSecret: id + "_secret_" + store.Random(25),
		ConfirmationMethod: "automatic", Created: u.now(), Livemode: u.Scope.Live, Status: domain.RequiresPaymentMethod,
		PaymentMethodOptions: domain.MethodOptions{Card: domain.CardOptions{RequestThreeDSecure: "automatic"}},
		PaymentMethodTypes:   in.Types, Metadata: map[string]string{},
	}
	if len(in.Types) == 0 {
		pi.PaymentMethodTypes = []string{domain.TypeOfCard, domain.TypeOfBank}
		if in.Automatic == nil || *in.Automatic {
			pi.AutomaticPaymentMethods = &domain.Automatic{AllowRedirects: in.AllowRedirects, Enabled: true}
		}
	}
	in.apply(pi)
	m, err := u.method(in.Confirmation.Method)
	if err != nil {
		return nil, err
	}
	if in.Confirm {
		if err := u.checkConfirm(pi, m, in.Confirmation); err != nil {
			return nil, err
		}
	}
	if m != nil {
		pi.PaymentMethod, pi.Status = &m.ID, domain.RequiresConfirmation
		if err := u.putMethod(m); err != nil {
			return nil, err
		}
	}
	err = all(
		func() error { return u.putIntent(pi) },
		func() error { return u.emitIntent("created", pi) },
	)
	if err == nil && in.Confirm {
		err = u.pay(pi, m, in.Confirmation)
	}
	return pi, err
}

func checkTypes(types []string) *domain.Error {
	for _, name := range types {
		if name != domain.TypeOfCard && name != domain.TypeOfBank {
			return domain.Invalid("", "payment_method_types", fmt.Sprintf("The payment method type %q is invalid.", name))
		}
	}
	return nil
}

// apply sets the given fields. An empty text unsets a field.
func (in *IntentInput) apply(pi *domain.Intent) {
	if in.Amount != nil {
		pi.Amount = *in.Amount
	}
	if in.Currency != nil {
		pi.Currency = *in.Currency
	}
	if in.CaptureMethod != nil {
		pi.CaptureMethod = *in.CaptureMethod
	}
	for value, at := range map[*string]**string{
		in.Customer: &pi.Customer, in.Description: &pi.Description, in.ReceiptEmail: &pi.ReceiptEmail, in.Descriptor: &pi.StatementDescriptor,
		in.Suffix: &pi.StatementDescriptorSuffix, in.FutureUsage: &pi.SetupFutureUsage, in.TransferGroup: &pi.TransferGroup,
	} {
		if value != nil {
			*at = text(*value)
		}
	}
	pi.Metadata = in.Metadata.Apply(pi.Metadata)
}

// UpdateIntent changes an intent.
func (u *Unit) UpdateIntent(id string, in IntentInput) (*domain.Intent, error) {
	pi, err := u.Intent(id)
	if err != nil {
		return nil, err
	}
	if err := u.checkUpdate(pi, in); err != nil {
		return nil, err
	}
	m, err := u.method(in.Confirmation.Method)
	if err != nil {
		return nil, err
	}
	in.apply(pi)
	if len(in.Types) > 0 {
		pi.PaymentMethodTypes, pi.AutomaticPaymentMethods = in.Types, nil
	}
	if m != nil {
		pi.PaymentMethod = &m.ID
		if err := u.putMethod(m); err != nil {
			return nil, err
		}
	}
	changed := m != nil || in.Amount != nil || in.Currency != nil
	if pi.PaymentMethod != nil && changed && pi.Status.In(domain.Payable) {
		pi.Status, pi.NextAction = domain.RequiresConfirmation, nil
	}
	return pi, u.putIntent(pi)
}

func (u *Unit) checkUpdate(pi *domain.Intent, in IntentInput) error {
	given := map[string]bool{
		"amount": in.Amount != nil, "currency": in.Currency != nil, "payment_method": in.Confirmation.Method != MethodInput{},
		"capture_method": in.CaptureMethod != nil, "payment_method_types": len(in.Types) > 0,
	}
	for _, name := range []string{"amount", "currency", "payment_method", "capture_method", "payment_method_types"} {
		if given[name] && !pi.Status.In(domain.Payable) {
			return domain.UnexpectedState(pi, fmt.Sprintf("This PaymentIntent's %s could not be updated because it has a status of %s. You may only update the %s of a PaymentIntent with one of the following statuses: %s.",
				name, pi.Status, name, join(domain.Payable)))
		}
	}
	if in.Amount == nil && in.Currency == nil {
		return refuse(checkTypes(in.Types))
	}
	after := *pi
	in.apply(&after)
	if err := refuse(domain.CheckCurrency(after.Currency)); err != nil {
		return err
	}
	return refuse(domain.CheckAmount(after.Amount, after.Currency), checkTypes(in.Types))
}

func join(statuses []domain.Status) string {
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// CancelIntent cancels an intent and releases the authorized amount.
func (u *Unit) CancelIntent(id string, reason *string) (*domain.Intent, error) {
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
	pi.Status, pi.CanceledAt, pi.CancellationReason = domain.Canceled, &at, reason
	pi.AmountCapturable, pi.NextAction = 0, nil
	return pi, all(
		func() error { return u.putIntent(pi) },
		func() error { return u.emitIntent("canceled", pi) },
	)
}
