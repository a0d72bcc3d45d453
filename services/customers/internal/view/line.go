package view

import (
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// lines returns the public bodies of stored lines. Their amounts were checked when they were written, so an error cannot occur
// here. The amounts of such a line would be 0.
func lines(list []domain.Line, currency string) []api.LineItem {
	out := make([]api.LineItem, len(list))
	for i, l := range list {
		a, _ := l.Amounts(currency)
		out[i] = api.LineItem{
			Description:    l.Description,
			Quantity:       l.Quantity,
			UnitAmount:     amount(money.Amount{Minor: l.UnitAmount, Currency: currency}),
			DiscountBps:    l.DiscountBps,
			TaxRateBps:     l.TaxRateBps,
			Amount:         amount(a.Amount),
			DiscountAmount: amount(a.Discount),
			TaxAmount:      amount(a.Tax),
		}
	}
	return out
}
