package store

import (
	"slices"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// storedLine is a line in the column with the lines.
type storedLine struct {
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitAmount  int64  `json:"unit_amount"`
	DiscountBps int64  `json:"discount_bps"`
}

// storedPricing is what the column pricing adds to the lines and the totals of a document. Taxes are stored once; lines and rows name
// them by index.
type storedPricing struct {
	Behavior      domain.TaxBehavior `json:"behavior"`
	DiscountTotal int64              `json:"discount_total,omitempty"`
	Rounding      int64              `json:"rounding,omitempty"`
	Taxes         []money.Tax        `json:"taxes,omitempty"`
	Lines         []storedAmounts    `json:"lines"`
	Rows          []storedRow        `json:"rows,omitempty"`
}

// storedAmounts are the amounts of a line, in the order of the lines.
type storedAmounts struct {
	Amount        int64  `json:"amount"`
	Discount      int64  `json:"discount,omitempty"`
	FixedDiscount *int64 `json:"fixed_discount,omitempty"`
	Tax           int64  `json:"tax,omitempty"`
	Taxes         []int  `json:"taxes,omitempty"`
}

// storedRow is a row of the breakdown.
type storedRow struct {
	Tax     int   `json:"tax"`
	Taxable int64 `json:"taxable"`
	Amount  int64 `json:"amount"`
}

// storedPrice contains the columns with the lines and the pricing of a document.
type storedPrice struct {
	lines   []storedLine
	pricing *storedPricing
}

// storePrice returns the columns of a document.
func storePrice(lines []domain.Line, t domain.Totals) *storedPrice {
	p := &storedPricing{Behavior: t.Behavior, DiscountTotal: t.DiscountTotal.Minor, Rounding: t.Rounding.Minor, Lines: make([]storedAmounts, len(lines))}
	index := func(tax money.Tax) int {
		i := slices.Index(p.Taxes, tax)
		if i < 0 {
			i, p.Taxes = len(p.Taxes), append(p.Taxes, tax)
		}
		return i
	}
	stored := make([]storedLine, len(lines))
	for i, l := range lines {
		stored[i] = storedLine{Description: l.Description, Quantity: l.Quantity, UnitAmount: l.UnitAmount, DiscountBps: l.DiscountBps}
		p.Lines[i] = storedAmounts{Amount: l.Amounts.Amount, Discount: l.Amounts.Discount, FixedDiscount: l.FixedDiscount, Tax: l.Amounts.Tax}
		for _, tax := range l.Taxes {
			p.Lines[i].Taxes = append(p.Lines[i].Taxes, index(tax))
		}
	}
	for _, r := range t.Breakdown {
		p.Rows = append(p.Rows, storedRow{Tax: index(r.Tax), Taxable: r.Taxable, Amount: r.Amount})
	}
	return &storedPrice{stored, p}
}

// read returns the lines of a document, and completes its totals, whose sums were read from their own columns.
func (s *storedPrice) read(t *domain.Totals) []domain.Line {
	p := s.pricing
	if p == nil {
		p = &storedPricing{}
	}
	currency := t.Total.Currency
	t.PriceTerms = domain.PriceTerms{Behavior: p.Behavior, DiscountTotal: money.Amount{Minor: p.DiscountTotal, Currency: currency}}
	t.Rounding = money.Amount{Minor: p.Rounding, Currency: currency}
	lines := make([]domain.Line, len(p.Lines))
	for i, a := range p.Lines {
		l := s.lines[i]
		lines[i] = domain.Line{
			Description: l.Description, Quantity: l.Quantity, UnitAmount: l.UnitAmount, DiscountBps: l.DiscountBps, FixedDiscount: a.FixedDiscount,
			Amounts: domain.LineAmounts{Amount: a.Amount, Discount: a.Discount, Tax: a.Tax},
		}
		for _, n := range a.Taxes {
			lines[i].Taxes = append(lines[i].Taxes, p.Taxes[n])
		}
	}
	for _, r := range p.Rows {
		t.Breakdown = append(t.Breakdown, money.TaxRow{Tax: p.Taxes[r.Tax], Taxable: r.Taxable, Amount: r.Amount})
	}
	return lines
}
