package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/quota"
)

const (
	// MaxPayments limits the payments of an invoice, including reversed ones, that a client can record.
	MaxPayments = 100
	// maxCardPayments is the same limit for payments by card. It is higher, so that manual payments never exclude card payments.
	maxCardPayments = 200
)

// PaymentSource is where a payment comes from.
type PaymentSource string

// The sources of payments. A client can reverse only manual payments.
const (
	ManualPayment  PaymentSource = "manual"
	GatewayPayment PaymentSource = "gateway"
)

// Payment is money that was paid on an invoice.
type Payment struct {
	ID         PaymentID
	Amount     money.Amount
	Method     string
	Source     PaymentSource
	PaidAt     time.Time
	Reference  *string
	ReversedAt *time.Time // nil: it counts
	Part       ChargePart // only of source gateway
}

// ChargePart is the charge that a payment is a part of, and the amount refunded of this part.
type ChargePart struct {
	Charge   string // pi_…
	Place    int    // position among the parts, from 1 in the order of payment; 0: not stored
	Refunded int64
	Disputed bool // the payer disputes the charge, and the operator has not won the dispute
}

// PaymentInput is a payment that a client records.
type PaymentInput struct {
	Amount    money.Amount
	Method    string
	PaidAt    patch.Field[string] // as sent
	Reference *string
}

// ParsePaymentID reads pay_…. It returns ErrPaymentNotFound for a malformed id.
func ParsePaymentID(s string) (PaymentID, error) {
	id, err := ids.Parse[ids.PaymentPrefix](s)
	if err != nil {
		return PaymentID{}, ErrPaymentNotFound
	}
	return id, nil
}

// payment converts the input to a payment of the invoice.
func (v Invoice) payment(id PaymentID, in PaymentInput, at Place) (Payment, error) {
	p := Payment{ID: id, Amount: in.Amount, Method: in.Method, Source: ManualPayment, PaidAt: at.Now, Reference: in.Reference}
	var currency, paidAt error
	if in.Amount.Currency != v.Total.Currency {
		currency = apperr.Field("amount.currency", "Must be %s, the currency of the invoice.", v.Total.Currency)
	}
	if text := in.PaidAt.Pointer(); text != nil {
		when, err := civil.ParseInstant(*text, at.Zone)
		switch {
		case err != nil:
			paidAt = apperr.Field("paid_at", "%s", err)
		case when.After(at.Now):
			paidAt = apperr.Field("paid_at", "Must not be in the future.")
		}
		p.PaidAt = when
	}
	return p, apperr.Join(currency, paidAt)
}

// Pay returns the invoice with one more payment as the last one. match reports whether the version is the expected one. Pay calls
// match after it checks the fields and before it checks the state.
func (v Invoice) Pay(id PaymentID, in PaymentInput, at Place, match patch.Precondition) (Invoice, error) {
	p, err := v.payment(id, in, at)
	if err != nil {
		return Invoice{}, err
	}
	if err := match.Check(v.Version); err != nil {
		return Invoice{}, err
	}
	if err := v.accepts(p.Amount.Minor); err != nil {
		return Invoice{}, err
	}
	return v.received(p, at)
}

// accepts returns the error for an amount that the invoice does not accept.
func (v Invoice) accepts(amount int64) error {
	if _, ok := v.Status.Next(PayAll); !ok {
		return v.move(PayAll, "paid")
	}
	if len(v.Payments) >= MaxPayments {
		return quota.ErrReached.WithMessage("An invoice has at most %d payments, including reversed ones.", MaxPayments).WithField("amount")
	}
	if due := v.Due().Minor; amount > due {
		return apperr.Field("amount", "Must be at most %d, the amount due.", due)
	}
	return nil
}

// received returns the invoice with one more payment, which it accepts.
func (v Invoice) received(p Payment, at Place) (Invoice, error) {
	due := v.Due().Minor
	action := PayAll
	if p.Amount.Minor < due {
		action = PayPart
	}
	if err := v.move(action, "paid"); err != nil {
		return Invoice{}, err
	}
	v.Payments = append(slices.Clone(v.Payments), p)
	v.Paid.Minor += p.Amount.Minor
	if v.Status == InvoicePaid {
		v.PaidAt = &at.Now
	}
	return v.At(at), nil
}

// Charge is money that a card payment brought for a booking.
type Charge struct {
	ID      string // the gateway's, pi_…
	Booking BookingID
	Invoice InvoiceID // the invoice that it pays; zero: none named
	Amount  money.Amount
	ChargeState
}

// ChargeState contains what can change after a charge. The newest version counts.
type ChargeState struct {
	Refunded int64
	Disputed bool
	Version  int64 // of the payment intent
}

// ChargedInvoice is a payment of an invoice that is a part of a charge.
type ChargedInvoice struct {
	Invoice  InvoiceID
	Payment  PaymentID
	Amount   int64
	Directed int64 // what the credit notes of the invoice have refunded of the charge, from all of its parts on the invoice
}

// UnallocatedCharge is a charge with a part that is neither allocated to an invoice nor refunded.
type UnallocatedCharge struct {
	ID       string
	Currency string // "": the booking's
	Rest     int64
	Parts    int // how many payments of invoices are parts of it
	Disputed bool
}

// RefundedParts returns the amount refunded of each part of a charge, given the amount refunded of the whole charge. parts are in
// the order in which they were paid. The refund of a credit note reduces the parts on its invoice. Other refunds first reduce the
// amount that no invoice took, and then the parts, starting with the last one. If the charge shows less than the credit notes have
// refunded, its next state is on its way, and none of them counts yet.
func RefundedParts(refunded, unapplied int64, parts []ChargedInvoice) []int64 {
	out, left, directed := make([]int64, len(parts)), map[InvoiceID]int64{}, int64(0)
	for _, p := range parts {
		if _, seen := left[p.Invoice]; !seen {
			left[p.Invoice], directed = p.Directed, directed+p.Directed
		}
	}
	if directed > refunded {
		clear(left)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		out[i] = min(refunded, left[p.Invoice], p.Amount)
		refunded, left[p.Invoice] = refunded-out[i], left[p.Invoice]-out[i]
	}
	rest := max(0, refunded-unapplied)
	for i := len(parts) - 1; i >= 0; i-- {
		more := min(rest, parts[i].Amount-out[i])
		out[i], rest = out[i]+more, rest-more
	}
	return out
}

// Refunded returns the invoice with the gateway's state of the payments that are parts of one charge. Nothing else on the invoice
// changes: paid amounts stay paid.
func (v Invoice) Refunded(parts map[PaymentID]int64, disputed bool) Invoice {
	v.Payments = slices.Clone(v.Payments)
	for i, p := range v.Payments {
		if refunded, ok := parts[p.ID]; ok {
			v.Payments[i].Part.Refunded, v.Payments[i].Part.Disputed = refunded, disputed
		}
	}
	return v
}

// PayByCard returns the invoice with as much of a charge as it accepts. taken is 0 if it accepts nothing.
func (v Invoice) PayByCard(id PaymentID, c UnallocatedCharge, at Place) (out Invoice, taken int64, err error) {
	taken = min(c.Rest, v.Due().Minor)
	if c.Currency != "" && c.Currency != v.Total.Currency || taken <= 0 || !v.Status.Awaits() || len(v.Payments) >= maxCardPayments {
		return v, 0, nil
	}
	out, err = v.received(Payment{
		ID: id, Amount: money.Amount{Minor: taken, Currency: v.Total.Currency}, Method: "card", Source: GatewayPayment, PaidAt: at.Now,
		Reference: &c.ID, Part: ChargePart{Charge: c.ID, Place: c.Parts + 1, Disputed: c.Disputed},
	}, at)
	return out, taken, err
}

// Reverse returns the invoice on which a payment no longer counts, and the payment's index in the list. If the payment is already
// reversed, nothing changes.
func (v Invoice) Reverse(id PaymentID, at Place, match patch.Precondition) (Invoice, int, error) {
	i := slices.IndexFunc(v.Payments, func(p Payment) bool { return p.ID == id })
	if i < 0 {
		return Invoice{}, 0, ErrPaymentNotFound
	}
	if err := match.Check(v.Version); err != nil {
		return Invoice{}, 0, err
	}
	p := v.Payments[i]
	switch {
	case p.Source != ManualPayment:
		return Invoice{}, 0, ErrTransition.WithMessage("Only payments with the source manual can be reversed. Refund this payment instead.").WithField("status")
	case p.ReversedAt != nil:
		return v, i, nil
	}
	v.Paid.Minor -= p.Amount.Minor
	if err := v.move(v.reversal(), "relieved of a payment"); err != nil {
		return Invoice{}, 0, err
	}
	p.ReversedAt = &at.Now
	v.Payments = slices.Clone(v.Payments)
	v.Payments[i] = p
	if v.Status != InvoicePaid {
		v.PaidAt = nil
	}
	return v.At(at), i, nil
}

// reversal returns the action of a reversal that left the paid amount of the invoice.
func (v Invoice) reversal() InvoiceAction {
	switch due := v.Due().IsZero(); {
	case due && v.Paid.IsZero():
		return ReverseCredited
	case due:
		return ReverseExcess
	case v.Paid.IsZero():
		return ReverseAll
	default:
		return ReversePart
	}
}
