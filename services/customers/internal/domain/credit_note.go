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
	Parts      []NotePart   // of Refund, by charge
	RefundID   string       // rf_…; "": the gateway does not know it
	RefundSeen int64        // the version of the refund that was applied
	Version    int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Calling    Accepting // the request to payments whose outcome is unknown
}

// NotePart is the part of a refund that goes through one charge. It is stored as JSON.
type NotePart struct {
	Charge string `json:"charge"`
	Amount int64  `json:"amount"`
}

// maxNoteParts is the largest number of charges that one credit note refunds, as for any refund.
const maxNoteParts = 20

// CreditNoteInput is the body of a create.
type CreditNoteInput struct {
	Lines  patch.Field[[]LineInput]
	Amount *money.Amount
	Reason *string
	Way    RefundWay

	Held    map[string]int64 // what credit notes of the invoice refund already, by charge
	Wording Wording
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
	parts, err := v.creditLines(&n, in)
	if err != nil {
		return Invoice{}, CreditNote{}, err
	}
	v.CreditedParts = v.CreditedParts.plus(1, parts)
	v.Credited += n.Total.Minor
	v.CreditNotes++
	if err := v.refundBy(&n, in.Held); err != nil {
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
func (v *Invoice) refundBy(n *CreditNote, held map[string]int64) error {
	n.Refund.Currency = v.Total.Currency
	elsewhere := max(0, v.RefundedAmount().Minor-v.Returned.Card)
	excess := v.Paid.Minor - v.Returned.All - v.Uncredited().Minor - elsewhere
	if n.Way == RefundNone || excess <= 0 {
		return nil
	}
	if n.Way == RefundGateway {
		parts, left := v.noteParts(excess, held)
		if left > 0 {
			return apperr.Field("refund", "Must be manual or none: of the %s to refund, only %s can be refunded by card at once.",
				money.Amount{Minor: excess, Currency: v.Total.Currency}, money.Amount{Minor: excess - left, Currency: v.Total.Currency})
		}
		n.Status, n.Parts = NoteRefundPending, parts
		v.Returned.Card += excess
	}
	n.Refund.Minor, n.Returned = excess, excess
	v.Returned.All += excess
	return nil
}

// noteParts distributes the refund of a credit note over the charges that paid the invoice, starting with the newest one. It takes no
// more of each than is left of its part on the invoice. left is the amount that remains. held is what other credit notes of the
// invoice refund.
func (v Invoice) noteParts(amount int64, held map[string]int64) (parts []NotePart, left int64) {
	paid, refunded := map[string]int64{}, map[string]int64{}
	var charges []string
	for _, p := range slices.Backward(v.Payments) {
		if p.Source != GatewayPayment {
			continue
		}
		if _, seen := paid[p.Part.Charge]; !seen {
			charges = append(charges, p.Part.Charge)
		}
		paid[p.Part.Charge] += p.Amount.Minor
		refunded[p.Part.Charge] += p.Part.Refunded
	}
	for _, charge := range charges {
		part := min(amount, paid[charge]-max(refunded[charge], held[charge]))
		if part > 0 && len(parts) < maxNoteParts {
			parts, amount = append(parts, NotePart{Charge: charge, Amount: part}), amount-part
		}
	}
	return parts, amount
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

// returned returns what the refund has returned or may return of each part of a credit note, and the sum.
func (n CreditNote) returned(r NoteRefund) (parts []NotePart, sum int64) {
	for _, p := range n.Parts {
		part := NotePart{Charge: p.Charge}
		for _, reported := range r.Parts {
			if reported.Charge == p.Charge && holds(reported.Status) {
				part.Amount += reported.Amount
			}
		}
		parts, sum = append(parts, part), sum+part.Amount
	}
	return parts, sum
}

// Refunded returns the credit note with a state of its refund, and what is returned of each of its parts. newer is false if a state at
// least as new was applied before.
func (n CreditNote) Refunded(r NoteRefund) (out CreditNote, parts []NotePart, newer bool) {
	newer = r.Version > n.RefundSeen || r.Version == n.RefundSeen && n.RefundID == "" && (r.Shown || !holds(r.Status))
	if n.Way != RefundGateway || !newer {
		return n, nil, false
	}
	switch {
	case !holds(r.Status):
		n.Status = NoteRefundFailed
	case r.Status == "succeeded":
		n.Status = NoteIssued
	default:
		n.Status = NoteRefundPending
	}
	parts, n.Returned = n.returned(r)
	if r.Shown {
		n.RefundID = r.ID
	}
	n.RefundSeen = r.Version
	if r.Shown || n.Status == NoteRefundFailed {
		n.Calling = n.Calling.End()
	}
	return n, parts, true
}
