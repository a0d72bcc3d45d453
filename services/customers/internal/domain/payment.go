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

// cardMethod is the method of card payments, which only the payment gateway records.
const cardMethod = "card"

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
	Part       ChargePart
}

// ChargePart is the charge that a payment is a part of, and the amount refunded of this part.
type ChargePart struct {
	Charge   string // its ID
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

// receipt converts the input to a payment that names the invoice.
func (v Invoice) receipt(id PaymentID, in PaymentInput, at DocumentContext) (Receipt, error) {
	r := Receipt{
		ID: id, Account: v.Account(), Invoice: v.ID, Amount: in.Amount.Minor, Method: in.Method, PaidAt: at.Now, Reference: in.Reference,
	}
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
		r.PaidAt = when
	}
	return r, apperr.Join(currency, paidAt)
}

// Accept returns the payment that a client records, if the invoice accepts it. match reports whether the version is the expected one.
// Accept calls match after it checks the fields and before it checks the state.
func (v Invoice) Accept(id PaymentID, in PaymentInput, at DocumentContext, match patch.Precondition) (Receipt, error) {
	r, err := v.receipt(id, in, at)
	if err != nil {
		return Receipt{}, err
	}
	if err := match.Check(v.Version); err != nil {
		return Receipt{}, err
	}
	return r, v.Accepts(r.Amount)
}

// Accepts returns the error for an amount that the invoice does not accept.
func (v Invoice) Accepts(amount int64) error {
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
func (v Invoice) received(p Payment, at DocumentContext) (Invoice, error) {
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

// Charge is money that a payment brought to an account.
type Charge struct {
	ID      string // pi_… of a card payment, else the uuid of the payment
	Account AccountRef
	Invoice InvoiceID // the invoice that it pays; zero: none named
	Amount  money.Amount
	Method  string
	// PaidAt and Reference are shown of payments other than card payments.
	PaidAt    time.Time
	Reference *string
	ChargeState
}

// Unallocated returns the charge before any invoice takes a part of it.
func (c Charge) Unallocated() UnallocatedCharge {
	return UnallocatedCharge{
		ID: c.ID, Currency: c.Amount.Currency, Rest: c.Amount.Minor, Disputed: c.Disputed, Method: c.Method, PaidAt: &c.PaidAt, Reference: c.Reference,
	}
}

// ChargeState contains what can change after a charge. The newest version counts.
type ChargeState struct {
	Refunded int64
	Directed int64 // the part of it that credit notes refund
	Disputed bool
	Version  int64 // of the account
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
	Method   string
	// PaidAt and Reference are shown of payments other than card payments.
	PaidAt    *time.Time
	Reference *string
}

// payment returns the payment that is the next part of the charge. The first part of a payment that a client recorded has its id.
func (c UnallocatedCharge) payment(amount money.Amount, at DocumentContext) (Payment, error) {
	p := Payment{
		ID: ids.New[ids.PaymentPrefix](), Amount: amount, Method: c.Method, Source: GatewayPayment, PaidAt: at.Now, Reference: &c.ID,
		Part: ChargePart{Charge: c.ID, Place: c.Parts + 1, Disputed: c.Disputed},
	}
	if c.Method == cardMethod {
		return p, nil
	}
	p.Source, p.Reference = ManualPayment, c.Reference
	if c.PaidAt != nil {
		p.PaidAt = *c.PaidAt
	}
	if c.Parts > 0 {
		return p, nil
	}
	return p, p.ID.Scan(c.ID)
}

// RefundedParts returns the amount refunded of each part of a charge, given the amount refunded of the whole charge. parts are in
// the order in which they were paid. The refund of a credit note reduces the parts on its invoice. Other refunds first reduce the
// amount that no invoice took, and then the parts, starting with the last one.
func RefundedParts(refunded, unapplied int64, parts []ChargedInvoice) []int64 {
	out, left := make([]int64, len(parts)), map[InvoiceID]int64{}
	for _, p := range parts {
		left[p.Invoice] = p.Directed
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

// PayWith returns the invoice with as much of a charge as it accepts. taken is 0 if it accepts nothing.
func (v Invoice) PayWith(c UnallocatedCharge, at DocumentContext) (out Invoice, taken int64, err error) {
	taken = min(c.Rest, v.Due().Minor)
	if c.Currency != "" && c.Currency != v.Total.Currency || taken <= 0 || !v.Status.Awaits() || len(v.Payments) >= maxCardPayments {
		return v, 0, nil
	}
	p, err := c.payment(money.Amount{Minor: taken, Currency: v.Total.Currency}, at)
	if err != nil {
		return v, 0, err
	}
	out, err = v.received(p, at)
	return out, taken, err
}

// Reversible returns a payment of the invoice that a client recorded. match reports whether the version is the expected one.
func (v Invoice) Reversible(id PaymentID, match patch.Precondition) (Payment, error) {
	i := slices.IndexFunc(v.Payments, func(p Payment) bool { return p.ID == id })
	if i < 0 {
		return Payment{}, ErrPaymentNotFound
	}
	if err := match.Check(v.Version); err != nil {
		return Payment{}, err
	}
	if v.Payments[i].Source != ManualPayment {
		return Payment{}, ErrTransition.WithMessage("Only payments with the source manual can be reversed. Refund this payment instead.").WithField("status")
	}
	return v.Payments[i], nil
}

// Reversed returns the invoice on which the parts of a charge no longer count.
func (v Invoice) Reversed(charge string, at DocumentContext) (Invoice, error) {
	return v.without(at, func(p Payment) int64 {
		if p.Part.Charge != charge {
			return 0
		}
		return p.Amount.Minor
	})
}

// without returns the invoice with less paid by each payment. A payment of which nothing is left no longer counts.
func (v Invoice) without(at DocumentContext, less func(p Payment) int64) (Invoice, error) {
	v.Payments = slices.Clone(v.Payments)
	taken := int64(0)
	for i, p := range slices.Backward(v.Payments) {
		if p.ReversedAt != nil {
			continue
		}
		amount := less(p)
		taken += amount
		switch amount {
		case 0:
			continue
		case p.Amount.Minor:
			p.ReversedAt, p.Part.Refunded = &at.Now, 0
		default:
			p.Amount.Minor -= amount
			p.Part.Refunded = min(p.Part.Refunded, p.Amount.Minor)
		}
		v.Payments[i] = p
	}
	if taken == 0 {
		return v, nil
	}
	v.Paid.Minor -= taken
	if err := v.move(v.reversal(), "relieved of a payment"); err != nil {
		return Invoice{}, err
	}
	if v.Status != InvoicePaid {
		v.PaidAt = nil
	}
	return v.At(at), nil
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
