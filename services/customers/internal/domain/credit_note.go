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

	Wording Wording
	Refunds
}

// Refunds contains the refunds that limit what a credit note of an invoice refunds.
type Refunds struct {
	Held       map[string]int64 // what credit notes of the invoice refund already, by charge
	HandedBack int64            // the part of what was handed back outside the gateway that comes from the money that the invoice does not need
}

// Credit returns the invoice with one more credit note, and the credit note. match reports whether the version of the invoice is the
// expected one. Credit calls match after it checks the fields and before it checks the state.
func (v Invoice) Credit(id CreditNoteID, in CreditNoteInput, at DocumentContext, match patch.Precondition) (Invoice, CreditNote, error) {
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
	if left, disputed := v.refundBy(&n, in.Refunds); left > 0 && disputed {
		return Invoice{}, CreditNote{}, ErrDisputed
	} else if left > 0 {
		return Invoice{}, CreditNote{}, apperr.Field("refund", "Must be manual or none: of the %s to refund, only %s can be refunded by card at once.",
			money.Amount{Minor: n.Refund.Minor + left, Currency: v.Total.Currency}, n.Refund)
	}
	return v.settled(at), n, nil
}

// Refund returns the invoice and the credit note with the refund that is right now. The credit does not change. It is for a credit note
// whose refund payments has not recorded, because the money of the account has changed since. It does not refund what cannot be refunded
// by card at once.
func (v Invoice) Refund(n CreditNote, refunds Refunds, at DocumentContext) (Invoice, CreditNote) {
	v.Returned = v.Returned.plus(-n.Returned, n.Way)
	n.Status, n.Returned, n.Refund.Minor, n.Parts = NoteIssued, 0, 0, nil
	v.refundBy(&n, refunds)
	if n.Refund.IsZero() {
		n.Calling = n.Calling.End()
	}
	return v.settled(at), n
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

// Slack returns what was paid beyond the total that the credit notes of the invoice leave, and was not refunded.
func (v Invoice) Slack() int64 {
	elsewhere := max(0, v.RefundedAmount().Minor-v.Returned.Card)
	return max(0, v.Paid.Minor-v.Returned.All-v.Uncredited().Minor-elsewhere)
}

// refundBy sets the refund of a new credit note, which the credited amount of the invoice already contains. It refunds the slack, except
// what was handed back. left is the part that cannot be refunded by card at once, and disputed reports whether a dispute is the reason.
func (v *Invoice) refundBy(n *CreditNote, refunds Refunds) (left int64, disputed bool) {
	n.Refund.Currency = v.Total.Currency
	amount := v.Slack() - refunds.HandedBack
	if n.Way == RefundNone || amount <= 0 {
		return 0, false
	}
	if n.Way == RefundGateway {
		n.Parts, left, disputed = v.noteParts(amount, refunds.Held)
		amount -= left
		if amount > 0 {
			n.Status = NoteRefundPending
		}
	}
	n.Refund.Minor, n.Returned = amount, amount
	v.Returned = v.Returned.plus(amount, n.Way)
	return left, disputed
}

// Freed returns the invoice without an amount of its slack, and what no invoice has of its charges from then on. What others have refunded
// of a charge leaves the invoice together with it. refunds are those of the credit notes of the invoice.
func (v Invoice) Freed(amount int64, refunds Refunds, at DocumentContext) (Invoice, []NotePart, error) {
	v.Payments = slices.Clone(v.Payments)
	var freed []NotePart
	paid, refunded, charges := v.byCharge()
	take := map[string]int64{}
	for _, charge := range charges {
		held := max(refunded[charge], refunds.Held[charge])
		part := min(amount, paid[charge]-held)
		if part <= 0 {
			continue
		}
		amount -= part
		part += held - refunds.Held[charge]
		freed, take[charge] = append(freed, NotePart{Charge: charge, Amount: part}), part
	}
	out, err := v.without(at, func(p Payment) int64 {
		less := min(take[p.Part.Charge], p.Amount.Minor)
		take[p.Part.Charge] -= less
		return less
	})
	return out, freed, err
}

// byCharge returns what is paid and refunded of each charge of the invoice, and the charges, the newest first.
func (v Invoice) byCharge() (paid, refunded map[string]int64, charges []string) {
	paid, refunded = map[string]int64{}, map[string]int64{}
	for _, p := range slices.Backward(v.Payments) {
		if p.ReversedAt != nil {
			continue
		}
		if _, seen := paid[p.Part.Charge]; !seen {
			charges = append(charges, p.Part.Charge)
		}
		paid[p.Part.Charge] += p.Amount.Minor
		refunded[p.Part.Charge] += p.Part.Refunded
	}
	return paid, refunded, charges
}

// noteParts distributes the refund of a credit note over the charges that paid the invoice, starting with the newest one. It takes no
// more of each than is left of its part on the invoice, in units that the gateway accepts, and nothing of a disputed one. left is the amount that remains, and disputed reports
// whether a disputed charge would have covered some of it. held is what other credit notes of the invoice refund.
func (v Invoice) noteParts(amount int64, held map[string]int64) (parts []NotePart, left int64, disputed bool) {
	paid, refunded, charges := v.byCharge()
	cards, disputes := map[string]bool{}, map[string]bool{}
	for _, p := range v.Payments {
		cards[p.Part.Charge], disputes[p.Part.Charge] = p.Source == GatewayPayment, p.Part.Disputed
	}
	for _, charge := range charges {
		part := min(amount, paid[charge]-max(refunded[charge], held[charge]))
		part -= part % money.CardUnit(v.Total.Currency)
		switch {
		case part <= 0 || !cards[charge]:
		case disputes[charge]:
			disputed = true
		case len(parts) < maxNoteParts:
			parts, amount = append(parts, NotePart{Charge: charge, Amount: part}), amount-part
		}
	}
	return parts, amount, disputed
}

// ReturnedBy returns the invoice after its credit notes have refunded more in a way, or less if more is negative, because a refund has
// failed.
func (v Invoice) ReturnedBy(more int64, way RefundWay, at DocumentContext) Invoice {
	v.Returned = v.Returned.plus(more, way)
	return v.settled(at)
}

// plus returns the sums after more was refunded in a way.
func (r Returned) plus(more int64, way RefundWay) Returned {
	r.All += more
	if way == RefundGateway {
		r.Card += more
	}
	return r
}

// settled returns the invoice in the state that follows from its amounts, after a credit or a failed refund reduced what is due.
func (v Invoice) settled(at DocumentContext) Invoice {
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
	if n.Way == RefundNone || !newer {
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
