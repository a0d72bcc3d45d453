package view

import (
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// Invoice returns the public body of an invoice in the caller's mode. Apply domain.Invoice.At first.
func Invoice(v domain.Invoice, mode api.Mode) api.Invoice {
	return api.Invoice{
		Id:                  v.ID.String(),
		Object:              api.InvoiceObjectInvoice,
		Number:              api.OrNull(v.Number),
		Status:              api.InvoiceStatus(v.Status),
		Kind:                api.InvoiceKind(v.Kind),
		Mode:                mode,
		Version:             v.Version,
		CustomerId:          v.CustomerID.String(),
		LeadId:              idOrNull(v.LeadID),
		QuoteId:             idOrNull(v.QuoteID),
		BookingId:           idOrNull(v.BookingID),
		BookingStatus:       api.OrNull(v.BookingStatus),
		LineItems:           lines(v.Lines, v.Total.Currency),
		TaxBehavior:         api.TaxBehavior(v.Behavior),
		SubtotalAmount:      amount(v.Subtotal),
		DiscountAmount:      amount(v.Discount),
		DiscountAmountTotal: amount(v.DiscountTotal),
		TaxAmount:           amount(v.Tax),
		TaxBreakdown:        breakdown(v.Totals),
		RoundingAmount:      amount(v.Rounding),
		TotalAmount:         amount(v.Total),
		AmountPaid:          amount(v.Paid),
		AmountRefunded:      amount(v.RefundedAmount()),
		AmountCredited:      amount(v.CreditedAmount()),
		AmountDue:           amount(v.Due()),
		Disputed:            v.Disputed(),
		Payments:            payments(v.Payments),
		DueAt:               timeOrNull(v.DueAt),
		Overdue:             v.Overdue,
		BillingAddress:      api.OrNull(v.BillingAddress),
		Billing:             billing(v.Billing),
		Notes:               api.OrNull(v.Notes),
		Metadata:            orEmpty(v.Metadata),
		CreatedAt:           v.CreatedAt.UTC(),
		UpdatedAt:           v.UpdatedAt.UTC(),
		OpenedAt:            timeOrNull(v.OpenedAt),
		PaidAt:              timeOrNull(v.PaidAt),
		VoidedAt:            timeOrNull(v.VoidedAt),
	}
}

func payments(list []domain.Payment) []api.InvoicePayment {
	out := make([]api.InvoicePayment, len(list))
	for i, p := range list {
		out[i] = api.InvoicePayment{
			Id:             p.ID.String(),
			Object:         api.InvoicePaymentObjectInvoicePayment,
			Amount:         amount(p.Amount),
			AmountRefunded: amount(money.Amount{Minor: p.Part.Refunded, Currency: p.Amount.Currency}),
			Method:         api.PaymentMethod(p.Method),
			Source:         api.PaymentSource(p.Source),
			PaidAt:         p.PaidAt.UTC(),
			Reference:      api.OrNull(p.Reference),
			ReversedAt:     timeOrNull(p.ReversedAt),
		}
	}
	return out
}

func billing(b *domain.Billing) nullable.Nullable[api.Billing] {
	if b == nil {
		return api.Null[api.Billing]()
	}
	return nullable.NewNullableWithValue(api.Billing{
		Name: b.Name, Company: api.OrNull(b.Company), Email: api.OrNull(b.Email), Address: api.OrNull(b.Address),
		TaxId: api.OrNull(b.TaxID), Country: api.OrNull(b.Country), Locale: api.OrNull(b.Locale),
	})
}

// ErasedInvoice returns the object of the event invoice.erased.
func ErasedInvoice(id string) Erased {
	return Erased{ID: id, Object: string(api.InvoiceObjectInvoice), Erased: true}
}

// DeletedInvoice returns the object of the event invoice.erased of a draft that was deleted.
func DeletedInvoice(id string) Erased {
	e := ErasedInvoice(id)
	e.Deleted = true
	return e
}
