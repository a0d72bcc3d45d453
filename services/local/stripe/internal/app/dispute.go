package app

import (
	"fmt"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// responseTime is the time that a merchant has to respond to a dispute, in seconds.
const responseTime = 9 * 24 * 3600

// OpenDispute disputes an amount of a charge, or everything not yet refunded, and withdraws the money from the balance. An inquiry
// withdraws nothing and does not appear in the charge.
func (u *Unit) OpenDispute(charge string, amount *int64, reason string, inquiry bool) (*domain.Dispute, error) {
	c, err := u.Charge(charge)
	if err != nil {
		return nil, err
	}
	take := c.Unrefunded()
	if amount != nil {
		take = *amount
	}
	switch {
	case c.Status != domain.ChargeSucceeded || !c.Captured || c.Disputed:
		return nil, domain.Invalid("", "charge", "The charge cannot be disputed: it has failed, is not captured, or is disputed.")
	case take < 1 || take > c.Unrefunded():
		return nil, domain.Invalid("", "amount", fmt.Sprintf("The amount of a dispute is from 1 to what is not refunded, %d.", c.Unrefunded()))
	}
	c.Disputed = !inquiry
	d := &domain.Dispute{
		ID: u.Tx.NewID(store.Disputes), Object: "dispute", Amount: take, Charge: c.ID, Created: u.now(), Currency: c.Currency,
		EnhancedEligibilityTypes: []string{}, EvidenceDetails: domain.EvidenceDetails{DueBy: u.now() + responseTime}, Livemode: u.Scope.Live,
		Metadata: map[string]string{}, PaymentIntent: c.PaymentIntent, Reason: reason, Status: domain.NeedsResponse,
	}
	if inquiry {
		d.Status = domain.WarningNeedsResponse
	}
	return d, all(
		func() error {
			if inquiry {
				return nil
			}
			return u.moveDispute(d, -take, u.Fees.Dispute, "dispute", "Chargeback withdrawal for "+c.ID)
		},
		func() error { return u.putCharge(c) },
		func() error { return u.putDispute(d) },
		func() error { return u.emitDispute("created", d, nil) },
		func() error {
			if inquiry {
				return nil
			}
			return u.emitDispute("funds_withdrawn", d, nil)
		},
	)
}

func (u *Unit) moveDispute(d *domain.Dispute, amount, fee int64, category, why string) error {
	b, err := u.move(movement{
		kind: domain.BalanceAdjustment, category: category, amount: amount, fee: fee, currency: d.Currency, source: d.ID, text: &why,
	})
	if err == nil {
		d.BalanceTransactions = append(d.BalanceTransactions, *b)
	}
	return err
}

func (u *Unit) emitDispute(kind string, d *domain.Dispute, before map[string]any) error {
	return u.emit("charge.dispute."+kind, d.PaymentIntent, d, before)
}

// CloseDispute ends a dispute. If it is won, the money returns to the balance.
func (u *Unit) CloseDispute(id, status string) (*domain.Dispute, error) {
	d, err := u.Dispute(id)
	if err != nil {
		return nil, err
	}
	if d.Closed() {
		return nil, domain.Invalid("", "", "This dispute is already closed")
	}
	if d.Inquiry() != (status == domain.WarningClosed) {
		return nil, domain.Invalid("", "", "An inquiry ends as "+domain.WarningClosed+", and no other dispute does.")
	}
	before := map[string]any{"status": d.Status}
	d.Status = status
	return d, all(
		func() error {
			if status != domain.Won {
				return nil
			}
			return u.moveDispute(d, d.Amount, 0, "dispute_reversal", "Chargeback reversal for "+d.Charge)
		},
		func() error { return u.putDispute(d) },
		func() error { return u.emitDispute("closed", d, before) },
		func() error {
			if status != domain.Won {
				return nil
			}
			return u.emitDispute("funds_reinstated", d, nil)
		},
	)
}
