package view

import (
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// CreditNote returns the public body of a credit note in the caller's mode.
func CreditNote(n domain.CreditNote, mode api.Mode) api.CreditNote {
	out := api.CreditNote{
		Id:             n.ID.String(),
		Object:         api.CreditNoteObjectCreditNote,
		Number:         n.Number,
		Status:         api.CreditNoteStatus(n.Status),
		Mode:           mode,
		Version:        n.Version,
		InvoiceId:      n.InvoiceID.String(),
		CustomerId:     n.CustomerID.String(),
		BookingId:      idOrNull(n.BookingID),
		Reason:         api.OrNull(n.Reason),
		LineItems:      lines(n.Lines, n.Total.Currency),
		TaxBehavior:    api.TaxBehavior(n.Behavior),
		TaxBreakdown:   breakdown(n.Totals),
		SubtotalAmount: amount(n.Subtotal),
		DiscountAmount: amount(n.Discount),
		TaxAmount:      amount(n.Tax),
		TotalAmount:    amount(n.Total),
		Refund:         api.CreditNoteRefund(n.Way),
		RefundAmount:   amount(n.Refund),
		RefundId:       api.Null[string](),
		CreatedAt:      n.CreatedAt.UTC(),
		UpdatedAt:      n.UpdatedAt.UTC(),
	}
	if n.RefundID != "" {
		out.RefundId = nullable.NewNullableWithValue(n.RefundID)
	}
	return out
}

// ErasedCreditNote returns the object of the event credit_note.erased.
func ErasedCreditNote(id string) Erased {
	return Erased{ID: id, Object: string(api.CreditNoteObjectCreditNote), Erased: true}
}

// PrintedCreditNote returns a credit note of an invoice as it is printed, in the operator's time zone.
func PrintedCreditNote(n domain.CreditNote, v domain.Invoice, info domain.Invoicing, zone *time.Location) Document {
	d := Document{
		Title: "Credit note", Number: n.Number, Issued: n.CreatedAt, Operator: info, Country: info.Country,
		Lines: n.Lines, Currency: n.Total.Currency, Totals: n.Totals,
	}
	d.Facts = []Fact{{"Date", day(n.CreatedAt, zone)}, {"For invoice", text(v.Number)}}
	if v.OpenedAt != nil {
		d.Facts = append(d.Facts, Fact{"Invoice date", day(*v.OpenedAt, zone)})
	}
	if v.Billing != nil {
		d.To = []string{v.Billing.Name, text(v.Billing.Company), text(v.Billing.Email), text(v.Billing.Address)}
	}
	if !n.Refund.IsZero() {
		d.After = append(d.After, Fact{"Refund", d.Amount(n.Refund)})
	}
	if n.Reason != nil {
		d.Texts = append(d.Texts, Fact{"Reason", *n.Reason})
	}
	return d
}
