package app

import (
	"fmt"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// ConfirmInput contains the parameters of a confirm.
type ConfirmInput struct {
	Method         MethodInput
	ReturnURL      string
	Publishable    bool   // confirmed by a publishable key
	Authentication string // extension of the stand-in: succeeded or failed ends an authentication
}

// ConfirmIntent confirms an intent. A declined charge is stored and returned as an error.
func (u *Unit) ConfirmIntent(id string, in ConfirmInput) (*domain.Intent, error) {
	pi, err := u.Intent(id)
	if err != nil {
		return nil, err
	}
	if err := checkConfirmable(pi); err != nil {
		return nil, err
	}
	m, err := u.method(in.Method)
	if err == nil && m == nil && pi.PaymentMethod != nil {
		m, err = store.Get[domain.StoredMethod](u.Tx, u.Scope, store.Methods, *pi.PaymentMethod)
	}
	if err != nil {
		return nil, err
	}
	if err := checkConfirm(pi, m, in); err != nil {
		return nil, err
	}
	if err := u.Tx.Put(u.Scope, store.Methods, m.ID, m); err != nil {
		return nil, err
	}
	return pi, u.pay(pi, m, in)
}

func checkConfirmable(pi *domain.Intent) error {
	switch {
	case pi.Status.In(domain.Confirmable):
		return nil
	case pi.Status == domain.Succeeded:
		return domain.UnexpectedState(pi, "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.")
	default:
		return domain.UnexpectedState(pi, fmt.Sprintf("You cannot confirm this PaymentIntent because it has a status of %s. Only a PaymentIntent with one of the following statuses may be confirmed: %s.",
			pi.Status, join(domain.Confirmable)))
	}
}

// checkConfirm checks the preconditions of pay.
func checkConfirm(pi *domain.Intent, m *domain.StoredMethod, in ConfirmInput) error {
	switch {
	case m == nil:
		return domain.UnexpectedState(pi, "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly with a payment method or ConfirmationToken.")
	case m.Type == domain.TypeOfBank && pi.Manual():
		return domain.Invalid("", "capture_method", "The payment method type us_bank_account does not support the capture method manual.")
	case in.ReturnURL == "" && !in.Publishable:
		return domain.Invalid("", "return_url", "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these payment methods might redirect your customer off of your page, you must provide a `return_url`. If you don't want to accept redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and `automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents.")
	default:
		return nil
	}
}

// pay requests authentication if the method requires it, and creates the charge.
func (u *Unit) pay(pi *domain.Intent, m *domain.StoredMethod, in ConfirmInput) error {
	waiting := pi.Status == domain.RequiresAction
	pi.PaymentMethod, pi.NextAction, pi.LastPaymentError = &m.ID, nil, nil
	if !domain.CaseNamed(m.Case).Authenticate {
		return u.attempt(pi, m)
	}
	if waiting && in.Authentication != "" {
		return u.authenticated(pi, m, in.Authentication == outcomeSucceeded)
	}
	pi.Status, pi.NextAction = domain.RequiresAction, u.nextAction(pi, in.ReturnURL)
	return all(
		func() error { return u.putIntent(pi) },
		func() error { return u.emitIntent("requires_action", pi) },
	)
}

func (u *Unit) nextAction(pi *domain.Intent, returnURL string) *domain.NextAction {
	if returnURL != "" {
		return &domain.NextAction{Type: "redirect_to_url", RedirectToURL: &domain.RedirectToURL{
			ReturnURL: returnURL, URL: u.BaseURL + "/authenticate/" + pi.ID,
		}}
	}
	return &domain.NextAction{Type: "use_stripe_sdk", UseStripeSDK: map[string]string{
		"type": "three_d_secure_redirect", "stripe_js": u.BaseURL + "/authenticate/" + pi.ID, "source": "src_" + pi.ID[3:],
	}}
}

const (
	outcomeSucceeded = "succeeded"
	outcomeFailed    = "failed"
)

// Outcomes are the results that a caller can report for an authentication or a refund.
var Outcomes = []string{outcomeSucceeded, outcomeFailed}

func (u *Unit) authenticated(pi *domain.Intent, m *domain.StoredMethod, ok bool) error {
	if ok {
		return u.attempt(pi, m)
	}
	failure := domain.Invalid("payment_intent_authentication_failure", "",
		"The provided PaymentMethod has failed authentication. You can provide payment_method_data or a new PaymentMethod to attempt to fulfill this PaymentIntent again.")
	failure.PaymentMethod = show(&m.PaymentMethod)
	pi.Status, pi.PaymentMethod, pi.LastPaymentError = domain.RequiresPaymentMethod, nil, failure
	err := all(
		func() error { return u.putIntent(pi) },
		func() error { return u.emitIntent("payment_failed", pi) },
	)
	if err != nil {
		return err
	}
	result := *failure
	result.PaymentIntent = pi
	return &result
}
