package api

import (
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// fromLines converts the lines of a quote or an invoice.
func fromLines(list *[]api.LineItemInput) patch.Field[[]domain.LineInput] {
	if list == nil {
		return patch.Field[[]domain.LineInput]{}
	}
	out := make([]domain.LineInput, len(*list))
	for i, l := range *list {
		out[i] = domain.LineInput{
			Line:     domain.Line{Description: l.Description, Quantity: l.Quantity, UnitAmount: l.UnitAmount.Amount},
			Currency: l.UnitAmount.Currency,
		}
		patch.FromPointer(l.DiscountBps).Set(&out[i].DiscountBps)
		patch.FromPointer(l.TaxRateBps).Set(&out[i].TaxRateBps)
	}
	return patch.Value(out)
}
