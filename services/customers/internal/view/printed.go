package view

import (
	"time"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// maxPrintedPayments limits the payments that an invoice shows each in its own row: the latest ones. One row shows the sum of the others.
const maxPrintedPayments = 20

// PrintedInvoice returns an invoice as it is printed, in the operator's time zone. A draft has no recipient yet, so it is addressed
// to the customer. A nil customer was erased. served contains the days of the service, or is nil if they are not known.
func PrintedInvoice(v domain.Invoice, customer *domain.Customer, info domain.Invoicing, zone *time.Location, served *domain.Days) Document {
	recipient := v.Billing
	if recipient == nil && customer != nil {
		recipient = customer.Billing(v.BillingAddress, info.Language(customer.Locale))
	}
	d := newDocument(info, recipient, v.Lines, v.Totals)
	l := d.Language
	d.Title, d.Number, d.Issued = l.texts.T(invoiceTitles[v.Kind]), l.texts.T("draft"), v.CreatedAt
	if v.Number != nil {
		d.Number = *v.Number
	}
	if v.OpenedAt != nil {
		d.Issued = *v.OpenedAt
	}
	d.fact("date", l.day(d.Issued, zone))
	if served != nil {
		d.fact("service_date", l.Days(*served))
	}
	if v.DueAt != nil {
		d.fact("due_date", l.day(*v.DueAt, zone))
	}
	d.fact("status", l.texts.T("invoice_"+string(v.Status)))
	if credited := v.CreditedAmount(); !credited.IsZero() {
		d.after("credited", l.Amount(credited))
	}
	d.payments(v.Payments, zone)
	refunded := v.RefundedAmount()
	if refunded.Minor += v.Returned.All - v.Returned.Card; !refunded.IsZero() { // a refund that was handed back is in no payment
		d.after("refunded", l.Amount(refunded))
	}
	d.after("due", l.Amount(v.Due()))
	d.bank(info.Bank)
	d.text("notes", v.Notes)
	return d
}

var invoiceTitles = map[domain.InvoiceKind]string{
	domain.FullInvoice: "invoice", domain.DepositInvoice: "deposit_invoice", domain.BalanceInvoice: "balance",
}

// payments adds the payments that count, with their dates and methods.
func (d *Document) payments(list []domain.Payment, zone *time.Location) {
	var counted []domain.Payment
	for _, p := range list {
		if p.ReversedAt == nil {
			counted = append(counted, p)
		}
	}
	earlier := money.Amount{Currency: d.Currency}
	for ; len(counted) > maxPrintedPayments; counted = counted[1:] {
		earlier.Minor += counted[0].Amount.Minor
	}
	if !earlier.IsZero() {
		d.after("paid_earlier", d.Language.Amount(earlier))
	}
	for _, p := range counted {
		d.after("paid_"+p.Method, d.Language.Amount(p.Amount), "Date", d.Language.day(p.PaidAt, zone))
	}
}

// PrintedQuote returns a quote as it is printed, in the operator's time zone. A nil customer was erased.
func PrintedQuote(q domain.Quote, customer *domain.Customer, info domain.Invoicing, zone *time.Location) Document {
	var recipient *domain.Billing
	if customer != nil {
		recipient = customer.Billing(nil, info.Language(customer.Locale))
	}
	d := newDocument(info, recipient, q.Lines, q.Totals)
	l := d.Language
	d.Title, d.Number, d.Issued = l.texts.T("quote"), q.Number, q.CreatedAt
	if q.SentAt != nil {
		d.Issued = *q.SentAt
	}
	d.fact("date", l.day(d.Issued, zone))
	d.fact("status", l.texts.T("quote_"+string(q.Status)))
	if q.ExpiresAt != nil {
		d.fact("valid_until", l.until(*q.ExpiresAt, zone))
	}
	if q.Day != nil {
		d.fact("event", l.Date(*q.Day))
	}
	if !q.Deposit.IsZero() {
		d.after("deposit", l.Amount(q.Deposit))
	}
	d.bank(info.Bank)
	d.text("terms", q.Terms)
	return d
}

// PrintedCreditNote returns a credit note of an invoice as it is printed, in the operator's time zone.
func PrintedCreditNote(n domain.CreditNote, v domain.Invoice, info domain.Invoicing, zone *time.Location) Document {
	d := newDocument(info, v.Billing, n.Lines, n.Totals)
	l := d.Language
	d.Title, d.Number, d.Issued = l.texts.T("credit_note"), n.Number, n.CreatedAt
	d.fact("date", l.day(n.CreatedAt, zone))
	d.fact("for_invoice", text(v.Number))
	if v.OpenedAt != nil {
		d.fact("invoice_date", l.day(*v.OpenedAt, zone))
	}
	if !n.Refund.IsZero() {
		d.after("refund", l.Amount(n.Refund))
	}
	d.text("reason", n.Reason)
	return d
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
