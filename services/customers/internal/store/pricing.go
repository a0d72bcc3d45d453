package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// storedLine is a line in the column with the lines, which the previous version also reads and writes.
type storedLine struct {
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitAmount  int64  `json:"unit_amount"`
	DiscountBps int64  `json:"discount_bps"`
	TaxRateBps  int64  `json:"tax_rate_bps"` // rounded down
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

// encodePrice returns the columns with the lines and the pricing of a document.
func encodePrice(lines []domain.Line, t domain.Totals) (linesJSON, pricingJSON []byte, err error) {
	p := storedPricing{Behavior: t.Behavior, DiscountTotal: t.DiscountTotal.Minor, Rounding: t.Rounding.Minor, Lines: make([]storedAmounts, len(lines))}
	index := func(tax money.Tax) int {
		i := slices.Index(p.Taxes, tax)
		if i < 0 {
			i, p.Taxes = len(p.Taxes), append(p.Taxes, tax)
		}
		return i
	}
	stored := make([]storedLine, len(lines))
	for i, l := range lines {
		bps, _ := l.TaxRateBps()
		stored[i] = storedLine{Description: l.Description, Quantity: l.Quantity, UnitAmount: l.UnitAmount, DiscountBps: l.DiscountBps, TaxRateBps: bps}
		p.Lines[i] = storedAmounts{Amount: l.Amounts.Amount, Discount: l.Amounts.Discount, FixedDiscount: l.FixedDiscount, Tax: l.Amounts.Tax}
		for _, tax := range l.Taxes {
			p.Lines[i].Taxes = append(p.Lines[i].Taxes, index(tax))
		}
	}
	for _, r := range t.Breakdown {
		p.Rows = append(p.Rows, storedRow{Tax: index(r.Tax), Taxable: r.Taxable, Amount: r.Amount})
	}
	linesJSON, err = json.Marshal(stored)
	if err == nil {
		pricingJSON, err = json.Marshal(p)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("encode lines: %w", err)
	}
	return linesJSON, pricingJSON, nil
}

// decodePrice reads the lines of a document, and completes its totals, whose sums were read from their own columns. A document without
// pricing was priced per line. So was one whose lines the previous version has changed since.
func decodePrice(linesJSON, pricingJSON []byte, t *domain.Totals) ([]domain.Line, error) {
	var stored []storedLine
	var p storedPricing
	if err := errors.Join(unmarshal(linesJSON, &stored), unmarshal(pricingJSON, &p)); err != nil {
		return nil, fmt.Errorf("decode lines: %w", err)
	}
	currency := t.Total.Currency
	t.Rounding.Currency = currency
	if lines, rows, ok := p.apply(stored); ok {
		terms := domain.PriceTerms{Behavior: p.Behavior, DiscountTotal: money.Amount{Minor: p.DiscountTotal, Currency: currency}}
		sums := domain.Sum(lines, terms, rows)
		if sums = sums.Come(sums.Total.Minor + p.Rounding); sums.Subtotal == t.Subtotal && sums.Discount == t.Discount && sums.Tax == t.Tax && sums.Total == t.Total {
			*t = sums
			return lines, nil
		}
	}
	lines := make([]domain.Line, len(stored))
	for i, l := range stored {
		lines[i] = l.line(domain.ShortTaxes(l.TaxRateBps))
	}
	lines, rows, err := domain.PriceByLine(lines, currency)
	t.PriceTerms, t.Breakdown = domain.NoTerms(currency), rows
	return lines, err
}

// apply returns the lines with the pricing, and the breakdown. ok is false if the pricing is absent or does not belong to the lines.
func (p storedPricing) apply(stored []storedLine) (lines []domain.Line, rows []money.TaxRow, ok bool) {
	if len(p.Lines) != len(stored) {
		return nil, nil, false
	}
	for i, a := range p.Lines {
		var taxes []money.Tax
		for _, n := range a.Taxes {
			taxes = append(taxes, p.Taxes[n])
		}
		l := stored[i].line(taxes)
		l.FixedDiscount = a.FixedDiscount
		l.Amounts = domain.LineAmounts{Amount: a.Amount, Discount: a.Discount, Tax: a.Tax}
		if bps, _ := l.TaxRateBps(); bps != stored[i].TaxRateBps {
			return nil, nil, false
		}
		lines = append(lines, l)
	}
	for _, r := range p.Rows {
		rows = append(rows, money.TaxRow{Tax: p.Taxes[r.Tax], Taxable: r.Taxable, Amount: r.Amount})
	}
	return lines, rows, true
}

func (l storedLine) line(taxes []money.Tax) domain.Line {
	return domain.Line{Description: l.Description, Quantity: l.Quantity, UnitAmount: l.UnitAmount, DiscountBps: l.DiscountBps, Taxes: taxes}
}
