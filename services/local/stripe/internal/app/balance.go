package app

import (
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// movement is the data of a balance transaction.
type movement struct {
	kind     string
	category string // reporting category
	amount   int64
	fee      int64
	currency string
	source   string
	text     *string
}

// move stores a balance transaction.
func (u *Unit) move(m movement) (*domain.BalanceTransaction, error) {
	b := &domain.BalanceTransaction{
		ID: u.Tx.NewID(store.Movements), Object: "balance_transaction", Amount: m.amount, AvailableOn: u.now(), BalanceType: "payments",
		Created: u.now(), Currency: m.currency, Description: m.text, Fee: m.fee, FeeDetails: []domain.FeeDetail{},
		Net: m.amount - m.fee, ReportingCategory: m.category, Source: m.source, Status: "available", Type: m.kind,
	}
	if m.fee != 0 {
		what := "Stripe processing fees"
		if m.kind == domain.BalanceAdjustment {
			what = "Dispute fee"
		}
		b.FeeDetails = append(b.FeeDetails, domain.FeeDetail{Amount: m.fee, Currency: m.currency, Description: what, Type: "stripe_fee"})
	}
	return b, u.Tx.Put(u.Scope, store.Movements, b.ID, b)
}

// moveCharge moves the captured amount of a charge into the balance.
func (u *Unit) moveCharge(c *domain.Charge) error {
	kind := domain.BalanceCharge
	if c.PaymentMethodDetails["type"] == domain.TypeOfBank {
		kind = domain.BalancePayment
	}
	m := movement{
		kind: kind, category: "charge", amount: c.AmountCaptured, fee: u.Fees.OfCharge(c.AmountCaptured), currency: c.Currency, source: c.ID,
		text: c.Description,
	}
	b, err := u.move(m)
	if err == nil {
		c.BalanceTransaction = &b.ID
	}
	return err
}
