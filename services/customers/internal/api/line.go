package api

import (
	"holdfast.dev/libs/money"
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
			Description: l.Description, Quantity: l.Quantity, UnitAmount: toAmount(l.UnitAmount), DiscountBps: l.DiscountBps,
			TaxRateBps: l.TaxRateBps, Taxes: fromTaxes(l.Taxes),
		}
		if l.DiscountAmount != nil {
			out[i].Discount = new(toAmount(*l.DiscountAmount))
		}
	}
	return patch.Value(out)
}

func fromTaxes(list *[]api.TaxInput) *[]money.TaxInput {
	if list == nil {
		return nil
	}
	out := make([]money.TaxInput, len(*list))
	for i, tax := range *list {
		out[i] = money.TaxInput(tax)
	}
	return &out
}

func toAmount(p api.Price) money.Amount { return money.Amount{Minor: p.Amount, Currency: p.Currency} }
