package domain

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
)

// InvoiceKind is what an invoice charges for.
type InvoiceKind string

// The kinds of an invoice.
const (
	DepositInvoice InvoiceKind = "deposit"
	BalanceInvoice InvoiceKind = "balance"
	FullInvoice    InvoiceKind = "full"
)

// Invoice is what a customer has to pay. Absent ids are zero; nil means unknown or not set yet.
type Invoice struct {
	Totals

	ID             InvoiceID
	Number         *string // nil: a draft
	Status         InvoiceStatus
	Kind           InvoiceKind
	CustomerID     CustomerID
	LeadID         LeadID
	QuoteID        QuoteID
	BookingID      BookingID
	BookingStatus  *string // according to the projection of bookings
	Lines          []Line
	Paid           money.Amount // the sum of the payments that are not reversed
	Payments       []Payment    // the oldest first
	Parts          Parts        // of a balance whose lines the platform wrote; nil: they follow from the lines
	Credited       int64        // the sum of its credit notes, in the smallest unit
	CreditedParts  Parts        // the same by sets of taxes
	Returned       Returned
	CreditNotes    int   // how many it has
	Served         *Days // of its booking when the invoice was opened; nil: not known
	DueAt          *time.Time
	Overdue        bool // set by At
	BillingAddress *string
	Billing        *Billing // set when the invoice is opened
	Notes          *string
	Metadata       json.RawMessage // compact JSON in the order sent, an object or an array of strings; nil when empty
	Version        int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
	OpenedAt       *time.Time
	PaidAt         *time.Time
	VoidedAt       *time.Time
}

// Billing is the recipient of an invoice at the time of its opening. It remains when the customer is erased, because the law
// requires its retention. It is stored as JSON.
type Billing struct {
	Name    string  `json:"name"`
	Company *string `json:"company"`
	Email   *string `json:"email"`
	Address *string `json:"address"`
	TaxID   *string `json:"tax_id"`
	Country *string `json:"country"`
	Locale  *string `json:"locale"`
}

// DocumentContext is what a document takes from its operator and its time: currency and time zone, and the caller's clock.
type DocumentContext struct {
	Currency string
	Zone     *time.Location
	Now      time.Time
}

// Returned contains what the credit notes of an invoice have refunded of its payments, including refunds in progress.
type Returned struct {
	All  int64
	Card int64 // the part of All that goes through the payment gateway
}

// Due returns the amount that is still to be paid, which is never negative. What credit notes have refunded was paid beyond the
// total that they leave, so it does not become due again. It is 0 for a void invoice.
func (v Invoice) Due() money.Amount {
	due := money.Amount{Minor: max(0, v.Total.Minor-v.Credited-v.Paid.Minor+v.Returned.All), Currency: v.Total.Currency}
	if v.Status == InvoiceVoid {
		due.Minor = 0
	}
	return due
}

// Locale returns the locale of the recipient, or nil if it is unknown or the invoice is a draft.
func (v Invoice) Locale() *string {
	if v.Billing == nil {
		return nil
	}
	return v.Billing.Locale
}

// RefundedAmount returns the amount refunded of the invoice's card payments.
func (v Invoice) RefundedAmount() money.Amount {
	sum := money.Amount{Currency: v.Total.Currency}
	for _, p := range v.Payments {
		sum.Minor += p.Part.Refunded
	}
	return sum
}

// Disputed reports whether a payer disputes one of the invoice's card payments.
func (v Invoice) Disputed() bool {
	return slices.ContainsFunc(v.Payments, func(p Payment) bool { return p.Part.Disputed })
}

// At returns the invoice as a caller sees it. It is overdue if something is due and the day of due_at has passed in the operator's
// time zone.
func (v Invoice) At(at DocumentContext) Invoice {
	v.Overdue = v.Status.Owes() && v.DueAt != nil && v.DueAt.Before(at.Today())
	return v
}

// Today returns the first instant of the current day in the operator's time zone. An invoice due before it is overdue.
func (p DocumentContext) Today() time.Time {
	start, _ := civil.DateOf(p.Now.In(p.Zone)).Start(p.Zone) // the day exists: the clock shows it
	return start
}

// Opened returns the invoice after its opening, without its number. Its lines are frozen, and if nothing is due, it is paid. An
// invoice that is open, or was paid by its opening, stays unchanged. reader is the language of the document.
func (v Invoice) Opened(customer *Customer, reader language.Tag, at DocumentContext) (Invoice, error) {
	if v.Status == InvoiceOpen || v.Status == InvoicePaid && v.Total.IsZero() {
		return v, nil
	}
	action := OpenInvoice
	if v.Total.IsZero() {
		action = OpenFreeInvoice
	}
	if err := v.move(action, "opened"); err != nil {
		return Invoice{}, err
	}
	if customer == nil {
		return Invoice{}, apperr.Field("customer_id", "The customer was erased.")
	}
	v.OpenedAt = &at.Now
	if v.Status == InvoicePaid {
		v.PaidAt = &at.Now
	}
	v.Billing = customer.Billing(v.BillingAddress, reader)
	return v.At(at), nil
}

// Voided returns the voided invoice. This requires that nothing is paid. A void invoice stays unchanged.
func (v Invoice) Voided(at DocumentContext) (Invoice, error) {
	if v.Status == InvoiceVoid {
		return v, nil
	}
	if !v.Paid.IsZero() && v.Status == InvoiceUncollectible {
		return Invoice{}, ErrTransition.WithMessage("An invoice with payments cannot be voided.").WithField("status")
	}
	if _, ok := v.Status.Next(VoidUnpaidInvoice); ok && v.CreditNotes > 0 {
		return Invoice{}, ErrTransition.WithMessage("An invoice with credit notes cannot be voided. Credit the rest of it instead.").WithField("status")
	}
	if err := v.move(VoidUnpaidInvoice, "voided"); err != nil {
		return Invoice{}, err
	}
	v.VoidedAt = &at.Now
	return v.At(at), nil
}

// GivenUp returns the invoice as uncollectible. An uncollectible invoice stays unchanged.
func (v Invoice) GivenUp(at DocumentContext) (Invoice, error) {
	if v.Status == InvoiceUncollectible {
		return v, nil
	}
	if err := v.move(MarkUncollectible, "marked as uncollectible"); err != nil {
		return Invoice{}, err
	}
	return v.At(at), nil
}

// InvoiceSource is an accepted quote from which an invoice is created.
type InvoiceSource struct {
	Quote    QuoteID
	Lead     LeadID // zero: none
	Number   string // of the quote
	Customer CustomerID
	Lines    []Line
	Totals   Totals
	Deposit  int64 // in the smallest unit; 0: none
	Wording  Wording
}

// InvoiceOf drafts the invoice that accepting a quote opens: for the deposit, or else for the total.
func InvoiceOf(id InvoiceID, q InvoiceSource, b Booking) (Invoice, error) {
	currency := q.Totals.Total.Currency
	v := Invoice{
		ID: id, Status: InvoiceDraft, Kind: FullInvoice, CustomerID: q.Customer, LeadID: q.Lead, QuoteID: q.Quote,
		BookingID: b.ID, BookingStatus: &b.Status, Served: b.Days, Lines: q.Lines, Totals: q.Totals, Paid: money.Amount{Currency: currency}, Version: 1,
	}
	var err error
	if q.Deposit > 0 {
		v.Kind = DepositInvoice
		v.Lines, v.Totals, err = depositLines(q)
	}
	return v, err
}

// InvoiceCounters returns the possible counters of the invoice with a number. A counter is the last six or more digits of the
// number, but the prefix may also end in digits.
func InvoiceCounters(number string) []int64 {
	const least, most = 6, 18 // digits; a shorter counter is padded with zeros
	digits := number[len(strings.TrimRight(number, "0123456789")):]
	counters := []int64{}
	for n := least; n <= min(most, len(digits)); n++ {
		text := digits[len(digits)-n:]
		if n > least && text[0] == '0' {
			continue
		}
		if counter, err := strconv.ParseInt(text, 10, 64); err == nil {
			counters = append(counters, counter)
		}
	}
	return counters
}
