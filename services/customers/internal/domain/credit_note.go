package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/quota"
)

// MaxCreditNotes limits the credit notes of an invoice.
const MaxCreditNotes = 100

// CreditNoteStatus is the state of the refund of a credit note. The credit itself counts in each state.
type CreditNoteStatus string

// The states of a credit note.
const (
	NoteIssued        CreditNoteStatus = "issued"
	NoteRefundPending CreditNoteStatus = "refund_pending"
	NoteRefundFailed  CreditNoteStatus = "refund_failed"
)

// RefundWay is how a credit note refunds what was paid beyond the new total of its invoice.
type RefundWay string

// The ways of a refund.
const (
	RefundNone    RefundWay = "none"
	RefundGateway RefundWay = "gateway"
	RefundManual  RefundWay = "manual"
)

// CreditNote credits all or part of an invoice. Absent ids are zero.
type CreditNote struct {
	Totals

	ID         CreditNoteID
	Number     string
	Status     CreditNoteStatus
	InvoiceID  InvoiceID
	CustomerID CustomerID
	BookingID  BookingID
	Reason     *string
	Lines      []Line
	Way        RefundWay
	Refund     money.Amount // the amount to refund
	Returned   int64        // the part of Refund that is refunded, or may be
	Charges    []string     // the payment intents to refund, in this order
	RefundID   string       // rf_…; "": the gateway does not know it
	RefundSeen int64        // the version of the refund that was applied
	Version    int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Calling    Accepting // the request to payments whose outcome is unknown
}

// CreditNoteInput is the body of a create.
type CreditNoteInput struct {
	Lines  patch.Field[[]LineInput]
	Amount *money.Amount
	Reason *string
	Way    RefundWay
}

// Credit returns the invoice with one more credit note, and the credit note. match reports whether the version of the invoice is the
// expected one. Credit calls match after it checks the fields and before it checks the state.
func (v Invoice) Credit(id CreditNoteID, in CreditNoteInput, at Place, match patch.Precondition) (Invoice, CreditNote, error) {
	if err := in.check(v.Total.Currency); err != nil {
		return Invoice{}, CreditNote{}, err
	}
	if err := match.Check(v.Version); err != nil {
		return Invoice{}, CreditNote{}, err
	}
	if _, ok := v.Status.Next(CreditPart); !ok {
		return Invoice{}, CreditNote{}, v.move(CreditPart, "credited")
	}
	if v.CreditNotes >= MaxCreditNotes {
		return Invoice{}, CreditNote{}, quota.ErrReached.WithMessage("An invoice has at most %d credit notes.", MaxCreditNotes).WithField("amount")
	}
	n := CreditNote{
		ID: id, Status: NoteIssued, InvoiceID: v.ID, CustomerID: v.CustomerID, BookingID: v.BookingID, Reason: in.Reason, Way: in.Way, Version: 1,
	}
	var err error
	if n.Lines, n.Totals, err = v.creditLines(in); err != nil {
		return Invoice{}, CreditNote{}, err
	}
	v.Credited += n.Total.Minor
	v.CreditNotes++
	if err := v.refundBy(&n); err != nil {
		return Invoice{}, CreditNote{}, err
	}
	return v.settled(at), n, nil
}

// check verifies the fields that do not depend on the state of the invoice.
func (in CreditNoteInput) check(currency string) error {
	switch {
	case in.Amount == nil:
		return nil
	case in.Lines.Given():
		return apperr.Field("amount", "Must not be sent with line_items. Send only one of them.")
	case in.Amount.Currency != currency:
		return apperr.Field("amount.currency", "Must be %s, the currency of the invoice.", currency)
	}
	if rounded, err := in.Amount.Rounded(); err != nil || rounded != *in.Amount {
		return apperr.Field("amount.amount", "Must be a multiple of 10, because a card cannot pay less in %s.", currency)
	}
	return nil
}

// CreditedAmount returns the sum of the credit notes of the invoice.
func (v Invoice) CreditedAmount() money.Amount {
	return money.Amount{Minor: v.Credited, Currency: v.Total.Currency}
}

// Uncredited returns the part of the total that no credit note has credited.
func (v Invoice) Uncredited() money.Amount {
	return money.Amount{Minor: v.Total.Minor - v.Credited, Currency: v.Total.Currency}
}

// refundBy sets the refund of a new credit note, which the credited amount of the invoice already contains. It refunds what was paid
// beyond the new total, except what other refunds of its card payments have returned.
func (v *Invoice) refundBy(n *CreditNote) error {
	n.Refund.Currency = v.Total.Currency
	byCard, refunded := v.cardPayments()
	excess := v.Paid.Minor - v.Returned.All - v.Uncredited().Minor - max(0, refunded-v.Returned.Card)
	if n.Way == RefundNone || excess <= 0 {
		return nil
	}
	if left := byCard - max(refunded, v.Returned.Card); n.Way == RefundGateway && excess > left {
		return apperr.Field("refund", "Must be manual or none: of the %s to refund, only %s was paid by card.",
			money.Amount{Minor: excess, Currency: v.Total.Currency}, money.Amount{Minor: max(0, left), Currency: v.Total.Currency})
	}
	n.Refund.Minor, n.Returned = excess, excess
	v.Returned.All += excess
	if n.Way == RefundGateway {
		v.Returned.Card += excess
		n.Status, n.Charges = NoteRefundPending, v.charges()
	}
	return nil
}

// cardPayments returns the sum of the card payments of the invoice, and of what was refunded of them.
func (v Invoice) cardPayments() (paid, refunded int64) {
	for _, p := range v.Payments {
		if p.Source == GatewayPayment {
			paid, refunded = paid+p.Amount.Minor, refunded+p.Part.Refunded
		}
	}
	return paid, refunded
}

// charges returns the charges that paid the invoice, the newest first.
func (v Invoice) charges() (list []string) {
	for _, p := range slices.Backward(v.Payments) {
		if p.Source == GatewayPayment && !slices.Contains(list, p.Part.Charge) {
			list = append(list, p.Part.Charge)
		}
	}
	return list
}

// ReturnedByCard returns the invoice after its credit notes have refunded more through the payment gateway, or less if more is
// negative, because a refund has failed.
func (v Invoice) ReturnedByCard(more int64, at Place) Invoice {
	v.Returned.All += more
	v.Returned.Card += more
	return v.settled(at)
}

// settled returns the invoice in the state that follows from its amounts, after a credit or a failed refund reduced what is due.
func (v Invoice) settled(at Place) Invoice {
	action := CreditPart
	switch {
	case v.Status == InvoicePaid || v.Status == InvoiceCredited || !v.Due().IsZero():
	case v.Uncredited().IsZero():
		action = CreditAll
	default:
		action = CreditRest
	}
	if next, ok := v.Status.Next(action); ok {
		if next == InvoicePaid && v.Status != InvoicePaid {
			v.PaidAt = &at.Now
		}
		v.Status = next
	}
	return v.At(at)
}

// NoteRefund is the state of the refund of a credit note, as payments reports it.
type NoteRefund struct {
	ID      string // rf_…; "": payments refused to create it
	Status  string // as in the public API
	Shown   bool   // the gateway knows it
	Version int64
	Parts   []NoteRefundPart
}

// RefusedRefundError reports that payments refused to create a refund.
type RefusedRefundError struct{ Err error }

// Error implements error.
func (e *RefusedRefundError) Error() string { return e.Err.Error() }

// NoteRefundPart is the part of a refund that goes through one charge.
type NoteRefundPart struct {
	Charge string
	Amount int64
	Status string // as that of the refund
}

// holds reports whether a refund or a part in a state has returned the money, or may do so.
func holds(status string) bool { return status != "failed" && status != "canceled" }

// Returned returns what the parts have returned or may return, by charge, and the sum.
func (r NoteRefund) Returned() (byCharge map[string]int64, sum int64) {
	byCharge = map[string]int64{}
	for _, p := range r.Parts {
		byCharge[p.Charge] += 0 // also a part that failed replaces what it had returned
		if holds(p.Status) {
			byCharge[p.Charge] += p.Amount
			sum += p.Amount
		}
	}
	return byCharge, sum
}

// Refunded returns the credit note with a state of its refund. It returns false if a state at least as new was applied before.
func (n CreditNote) Refunded(r NoteRefund) (CreditNote, bool) {
	newer := r.Version > n.RefundSeen || r.Version == n.RefundSeen && n.RefundID == "" && (r.Shown || !holds(r.Status))
	if n.Way != RefundGateway || !newer {
		return n, false
	}
	switch {
	case !holds(r.Status):
		n.Status = NoteRefundFailed
	case r.Status == "succeeded":
		n.Status = NoteIssued
	default:
		n.Status = NoteRefundPending
	}
	_, n.Returned = r.Returned()
	if r.Shown {
		n.RefundID = r.ID
	}
	n.RefundSeen = r.Version
	if r.Shown || n.Status == NoteRefundFailed {
		n.Calling = n.Calling.End()
	}
	return n, true
}
