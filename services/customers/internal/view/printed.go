package view

import (
	"strings"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/customers/internal/domain"
)

// PrintedInvoice returns an invoice as it is printed, in the operator's time zone. A draft has no recipient yet, so it is addressed
// to the customer. A nil customer was erased. served contains the days of the service, or is nil if they are not known.
func PrintedInvoice(v domain.Invoice, customer *domain.Customer, info domain.Invoicing, zone *time.Location, served *domain.Days) Document {
	d := Document{
		Title: "Invoice", Number: "Draft", Issued: v.CreatedAt, Operator: info, Country: info.Country,
		Lines: v.Lines, Currency: v.Total.Currency, Totals: v.Totals,
	}
	switch v.Kind {
	case domain.DepositInvoice:
		d.Title = "Deposit invoice"
	case domain.BalanceInvoice:
		d.Title = "Balance invoice"
	case domain.FullInvoice:
	}
	if v.Number != nil {
		d.Number = *v.Number
	}
	if v.OpenedAt != nil {
		d.Issued = *v.OpenedAt
	}
	d.Facts = append(d.Facts, Fact{"Date", day(d.Issued, zone)})
	if served != nil {
		d.Facts = append(d.Facts, Fact{"Service date", served.String()})
	}
	if v.DueAt != nil {
		d.Facts = append(d.Facts, Fact{"Due", day(*v.DueAt, zone)})
	}
	d.Facts = append(d.Facts, Fact{"Status", strings.ReplaceAll(string(v.Status), "_", " ")})
	switch {
	case v.Billing != nil:
		d.To = []string{v.Billing.Name, text(v.Billing.Company), text(v.Billing.Email), text(v.Billing.Address)}
	case customer != nil:
		d.To = append(recipient(*customer), text(v.BillingAddress))
	}
	if credited := v.CreditedAmount(); !credited.IsZero() {
		d.After = append(d.After, Fact{"Credited", d.Amount(credited)})
	}
	if !v.Paid.IsZero() {
		d.After = append(d.After, Fact{"Paid", d.Amount(v.Paid)})
	}
	refunded := v.RefundedAmount()
	if refunded.Minor += v.Returned.All - v.Returned.Card; !refunded.IsZero() { // a refund that was handed back is in no payment
		d.After = append(d.After, Fact{"Refunded", d.Amount(refunded)})
	}
	d.After = append(d.After, Fact{"Due", d.Amount(v.Due())})
	if v.Notes != nil {
		d.Texts = append(d.Texts, Fact{"Notes", *v.Notes})
	}
	return d
}

// PrintedQuote returns a quote as it is printed, in the operator's time zone. A nil customer was erased.
func PrintedQuote(q domain.Quote, customer *domain.Customer, info domain.Invoicing, zone *time.Location) Document {
	d := Document{
		Title: "Quote", Number: q.Number, Issued: q.CreatedAt, Operator: info, Country: info.Country,
		Lines: q.Lines, Currency: q.Total.Currency, Totals: q.Totals,
	}
	if q.SentAt != nil {
		d.Issued = *q.SentAt
	}
	d.Facts = append(d.Facts, Fact{"Date", day(d.Issued, zone)}, Fact{"Status", string(q.Status)})
	if q.ExpiresAt != nil {
		d.Facts = append(d.Facts, Fact{"Valid until", validUntil(*q.ExpiresAt, zone)})
	}
	if q.Day != nil {
		d.Facts = append(d.Facts, Fact{"Event", q.Day.String()})
	}
	if customer != nil {
		d.To = recipient(*customer)
	}
	if !q.Deposit.IsZero() {
		d.After = append(d.After, Fact{"Deposit", d.Amount(q.Deposit)})
	}
	if q.Terms != nil {
		d.Texts = append(d.Texts, Fact{"Terms", *q.Terms})
	}
	return d
}

func recipient(c domain.Customer) []string {
	return []string{c.Name(), text(c.Company), c.Email}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// day returns the date of an instant in a zone.
func day(t time.Time, zone *time.Location) string { return civil.DateOf(t.In(zone)).String() }

// validUntil returns the last whole day before an instant at midnight of a zone, or else its day, time and zone.
func validUntil(t time.Time, zone *time.Location) string {
	date := civil.DateOf(t.In(zone))
	if first, ok := date.Start(zone); ok && first.Equal(t) {
		return date.AddDays(-1).String()
	}
	return t.In(zone).Format("2006-01-02 15:04 MST")
}
