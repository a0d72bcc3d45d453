package app

import (
	"fmt"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// RefundInput contains the parameters of a refund.
type RefundInput struct {
	PaymentIntent string
	Amount        *int64
	Reason        *string
	Metadata      map[string]string
}

// CreateRefund refunds an amount of a charge, or the remaining amount.
func (u *Unit) CreateRefund(in RefundInput) (*domain.Refund, error) {
	c, err := u.refundable(in.PaymentIntent)
	if err != nil {
		return nil, err
	}
	amount := c.Unrefunded()
	if in.Amount != nil {
		amount = *in.Amount
	}
	if err := u.checkRefund(c, amount); err != nil {
		return nil, err
	}
	test, err := u.testCase(c.PaymentMethod)
	if err != nil {
		return nil, err
	}
	r := u.newRefund(c, amount)
	r.Reason, r.Metadata = in.Reason, in.Metadata
	if test.Refund == domain.RefundSucceeded {
		r.Status = domain.RefundPending
	}
	before := map[string]any{"amount_refunded": c.AmountRefunded, "refunded": c.Refunded}
	c.AmountRefunded += amount
	c.Refunded = c.AmountRefunded == c.Amount
	return r, all(
		func() error { return u.moveRefund(c, r) },
		func() error { return u.putCharge(c) },
		func() error { return u.putRefund(r) },
		func() error { return u.emitCharge("refunded", c, before) },
		func() error { return u.emit("refund.created", r.PaymentIntent, r, nil) },
		func() error {
			if test.Refund == "" {
				return nil
			}
			return u.schedule(taskRefund, r.ID)
		},
	)
}

// refundable returns the charge to refund.
func (u *Unit) refundable(intent string) (*domain.Charge, error) {
	pi, err := find[domain.Intent](u, store.Intents, intent, "payment_intent", "payment_intent")
	if err != nil {
		return nil, err
	}
	if pi.LatestCharge == nil {
		return nil, domain.Invalid("", "payment_intent", fmt.Sprintf("This PaymentIntent (%s) does not have a successful charge to refund.", pi.ID))
	}
	return u.Charge(*pi.LatestCharge)
}

func (u *Unit) checkRefund(c *domain.Charge, amount int64) error {
	switch {
	case c.Status != domain.ChargeSucceeded || !c.Captured:
		return domain.Invalid("", "payment_intent", fmt.Sprintf("This PaymentIntent (%s) does not have a successful charge to refund.", c.PaymentIntent))
	case c.Unrefunded() == 0:
		return domain.Invalid("charge_already_refunded", "", "Charge "+c.ID+" has already been refunded.")
	}
	for id := range u.Tx.OfIntent(u.Scope, store.Disputes, c.PaymentIntent, "") {
		d, err := u.Dispute(id)
		if err != nil {
			return err
		}
		if d.Status != domain.Won {
			return domain.Invalid("charge_disputed", "", "The charge, "+c.ID+", has been charged back; cannot issue a refund.")
		}
	}
	if amount > c.Unrefunded() {
		return domain.Invalid("", "amount", fmt.Sprintf("Refund amount (%s) is greater than unrefunded amount on charge (%s)",
			domain.Format(amount, c.Currency), domain.Format(c.Unrefunded(), c.Currency)))
	}
	return refuse(domain.CheckLastDigits(amount, c.Currency, "amount"))
}

func (u *Unit) newRefund(c *domain.Charge, amount int64) *domain.Refund {
	return &domain.Refund{
		ID: u.Tx.NewID(store.Refunds), Object: "refund", Amount: amount, Charge: c.ID, Created: u.now(), Currency: c.Currency,
		Metadata: map[string]string{}, PaymentIntent: c.PaymentIntent, Status: domain.RefundSucceeded,
	}
}

func (u *Unit) moveRefund(c *domain.Charge, r *domain.Refund) error {
	kind := domain.BalanceRefund
	if c.PaymentMethodDetails["type"] == domain.TypeOfBank {
		kind = domain.BalancePaymentRefund
	}
	b, err := u.move(movement{kind: kind, category: "refund", amount: -r.Amount, currency: r.Currency, source: r.ID, text: new("REFUND FOR CHARGE")})
	if err == nil {
		r.BalanceTransaction = &b.ID
	}
	return err
}

// FinishRefund ends a pending refund. If it fails, the money returns to the balance.
func (u *Unit) FinishRefund(id, outcome string) (*domain.Refund, error) {
	r, err := u.Refund(id)
	if err != nil {
		return nil, err
	}
	if r.Status == domain.RefundFailed || r.Status == outcome || r.BalanceTransaction == nil {
		return nil, domain.Invalid("", "", "The refund cannot become "+outcome+"; its status is "+r.Status+".")
	}
	before := map[string]any{"status": r.Status}
	r.Status = outcome
	if outcome == domain.RefundFailed {
		if err := u.takeBack(r); err != nil {
			return nil, err
		}
	}
	return r, all(
		func() error { return u.putRefund(r) },
		func() error { return u.emit("charge.refund.updated", r.PaymentIntent, r, before) },
		func() error { return u.emit("refund.updated", r.PaymentIntent, r, before) },
	)
}

func (u *Unit) takeBack(r *domain.Refund) error {
	c, err := u.Charge(r.Charge)
	if err != nil {
		return err
	}
	c.AmountRefunded -= r.Amount
	c.Refunded = false
	r.FailureReason = "expired_or_canceled_card"
	b, err := u.move(movement{
		kind: domain.BalanceRefundFailure, category: "refund_failure", amount: r.Amount, currency: r.Currency, source: r.ID, text: new("REFUND FAILURE"),
	})
	if err != nil {
		return err
	}
	r.FailureBalanceTransaction = b.ID
	return u.putCharge(c)
}
