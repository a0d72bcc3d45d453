package app

import (
	"encoding/json"
	"fmt"
	"maps"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

func show(object any) json.RawMessage {
	text, _ := json.Marshal(object) // our own types
	return text
}

func (u *Unit) newCharge(pi *domain.Intent, m *domain.StoredMethod) *domain.Charge {
	c := &domain.Charge{
		ID: u.Tx.NewID(store.Charges), Object: "charge", Amount: pi.Amount, BillingDetails: m.BillingDetails, Created: u.now(),
		Currency: pi.Currency, Description: pi.Description, Livemode: u.Scope.Live, Metadata: maps.Clone(pi.Metadata),
		PaymentIntent: pi.ID, PaymentMethod: m.ID, PaymentMethodDetails: m.ChargeDetails(), ReceiptEmail: pi.ReceiptEmail,
		Status: domain.ChargeSucceeded, Paid: true, Captured: true,
		Outcome: &domain.Outcome{
			NetworkStatus: "approved_by_network", RiskLevel: "normal", RiskScore: 20, SellerMessage: "Payment complete.", Type: "authorized",
		},
	}
	receipt := u.BaseURL + "/receipts/" + c.ID
	c.ReceiptURL, pi.LatestCharge = &receipt, &c.ID
	return c
}

// attempt attempts to charge an intent.
func (u *Unit) attempt(pi *domain.Intent, m *domain.StoredMethod) error {
	test, c := domain.CaseNamed(m.Case), u.newCharge(pi, m)
	switch {
	case test.Bank:
		return u.pending(pi, c)
	case test.Decline != nil:
		return u.declined(pi, c, m, test.Decline)
	case pi.Manual():
		return u.authorized(pi, c)
	default:
		return u.succeeded(pi, c, test)
	}
}

// pending sets the intent to processing until the bank responds.
func (u *Unit) pending(pi *domain.Intent, c *domain.Charge) error {
	c.Status, c.Paid, c.Captured, c.Outcome = domain.ChargePending, false, true, nil
	pi.Status, pi.Processing = domain.Processing, &domain.ProcessingState{Type: domain.TypeOfBank}
	return all(
		func() error { return u.putCharge(c) },
		func() error { return u.putIntent(pi) },
		func() error { return u.emitCharge("pending", c, nil) },
		func() error { return u.emitIntent("processing", pi) },
		func() error { return u.schedule(taskSettle, pi.ID) },
	)
}

// declined stores the failed charge and returns the card error.
func (u *Unit) declined(pi *domain.Intent, c *domain.Charge, m *domain.StoredMethod, why *domain.Decline) error {
	failure := why.Error()
	failure.Charge, failure.PaymentMethod = c.ID, show(&m.PaymentMethod)
	c.Status, c.Paid, c.Captured, c.BalanceTransaction = domain.ChargeFailed, false, false, nil
	c.FailureCode, c.FailureMessage, c.Outcome = &why.Code, &why.Message, why.Outcome()
	pi.Status, pi.PaymentMethod, pi.Processing, pi.LastPaymentError = domain.RequiresPaymentMethod, nil, nil, failure
	err := all(
		func() error { return u.putCharge(c) },
		func() error { return u.putIntent(pi) },
		func() error { return u.emitCharge("failed", c, nil) },
		func() error { return u.emitIntent("payment_failed", pi) },
	)
	if err != nil {
		return err
	}
	result := *failure
	result.PaymentIntent = pi
	return &result
}

func (u *Unit) authorized(pi *domain.Intent, c *domain.Charge) error {
	c.Captured = false
	pi.Status, pi.AmountCapturable = domain.RequiresCapture, pi.Amount
	return all(
		func() error { return u.putCharge(c) },
		func() error { return u.putIntent(pi) },
		func() error { return u.emitCharge("succeeded", c, nil) },
		func() error { return u.emitIntent("amount_capturable_updated", pi) },
	)
}

func (u *Unit) succeeded(pi *domain.Intent, c *domain.Charge, test *domain.TestCase) error {
	c.Status, c.Paid, c.Captured, c.AmountCaptured = domain.ChargeSucceeded, true, true, c.Amount
	pi.Status, pi.AmountReceived, pi.Processing = domain.Succeeded, c.Amount, nil
	return all(
		func() error { return u.moveCharge(c) },
		func() error { return u.putCharge(c) },
		func() error { return u.putIntent(pi) },
		func() error { return u.emitCharge("succeeded", c, nil) },
		func() error { return u.emitIntent("succeeded", pi) },
		func() error { return u.foresee(c, test) },
	)
}

// foresee schedules the dispute that follows a charge of some test cards.
func (u *Unit) foresee(c *domain.Charge, test *domain.TestCase) error {
	if test.Dispute == "" {
		return nil
	}
	return u.schedule(taskDispute, c.ID)
}

// CaptureIntent captures an amount, or the whole amount, and releases the rest.
func (u *Unit) CaptureIntent(id string, amount *int64) (*domain.Intent, error) {
	pi, err := u.Intent(id)
	if err != nil {
		return nil, err
	}
	if pi.Status != domain.RequiresCapture {
		return nil, domain.UnexpectedState(pi, fmt.Sprintf("This PaymentIntent could not be captured because it has a status of %s. Only a PaymentIntent with one of the following statuses may be captured: requires_capture.", pi.Status))
	}
	take := pi.AmountCapturable
	if amount != nil {
		take = *amount
	}
	if take > pi.AmountCapturable {
		return nil, domain.Invalid("amount_too_large", "amount_to_capture", fmt.Sprintf("The amount to capture, %d, is greater than the amount you can capture for this PaymentIntent, %d.", take, pi.AmountCapturable))
	}
	if err := refuse(domain.CheckLastDigits(take, pi.Currency, "amount_to_capture")); err != nil {
		return nil, err
	}
	c, err := u.Charge(*pi.LatestCharge)
	if err != nil {
		return nil, err
	}
	test, err := u.testCase(c.PaymentMethod)
	if err != nil {
		return nil, err
	}
	c.Captured, c.AmountCaptured = true, take
	pi.Status, pi.AmountReceived, pi.AmountCapturable = domain.Succeeded, take, 0
	return pi, all(
		func() error { return u.moveCharge(c) },
		func() error { return u.release(pi, c, c.Amount-take) },
		func() error { return u.putCharge(c) },
		func() error { return u.putIntent(pi) },
		func() error { return u.emitCharge("captured", c, nil) },
		func() error { return u.emitIntent("succeeded", pi) },
		func() error { return u.foresee(c, test) },
	)
}

// release releases an authorized amount that was not captured: a refund that moves no money.
func (u *Unit) release(pi *domain.Intent, c *domain.Charge, amount int64) error {
	if amount == 0 {
		return nil
	}
	c.AmountRefunded += amount
	c.Refunded = c.AmountRefunded == c.Amount
	r := u.newRefund(c, amount)
	r.Status, r.Reason = domain.RefundSucceeded, nil
	return all(
		func() error { return u.putCharge(c) },
		func() error { return u.putRefund(r) },
	)
}
