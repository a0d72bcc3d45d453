package view

import (
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
		RoundingAmount: amount(n.Rounding),
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
