package view

import (
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// lines returns the public bodies of priced lines.
func lines(list []domain.Line, currency string) []api.LineItem {
	minor := func(n int64) api.Money { return amount(money.Amount{Minor: n, Currency: currency}) }
	out := make([]api.LineItem, len(list))
	for i, l := range list {
		out[i] = api.LineItem{
			Description:         l.Description,
			Quantity:            l.Quantity,
			UnitAmount:          minor(l.UnitAmount),
			DiscountBps:         l.DiscountBps,
			FixedDiscountAmount: api.Null[api.Money](),
			Taxes:               make([]api.Tax, len(l.Taxes)),
			TaxRateBps:          api.Null[int64](),
			Amount:              minor(l.Amounts.Amount),
			DiscountAmount:      minor(l.Amounts.Discount),
			TaxAmount:           minor(l.Amounts.Tax),
		}
		if l.FixedDiscount != nil {
			out[i].FixedDiscountAmount = nullable.NewNullableWithValue(minor(*l.FixedDiscount))
		}
		for n, tax := range l.Taxes {
			out[i].Taxes[n] = api.Tax{Name: tax.Name, Rate: tax.Rate.String()}
		}
		if bps, exact := l.TaxRateBps(); exact {
			out[i].TaxRateBps = nullable.NewNullableWithValue(bps)
		}
	}
	return out
}

// breakdown returns the public rows of the taxes of a document.
func breakdown(t domain.Totals) []api.TaxBreakdownRow {
	out := make([]api.TaxBreakdownRow, len(t.Breakdown))
	for i, r := range t.Breakdown {
		out[i] = api.TaxBreakdownRow{
			Name: r.Name, Rate: r.Rate.String(),
			TaxableAmount: amount(money.Amount{Minor: r.Taxable, Currency: t.Total.Currency}),
			TaxAmount:     amount(money.Amount{Minor: r.Amount, Currency: t.Total.Currency}),
		}
	}
	return out
}
