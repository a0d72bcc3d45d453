package domain

import (
	"fmt"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// maxTotal is the largest amount of a Price in the contract, in the smallest unit of any currency.
const maxTotal = 99_999_999_999

// TaxBehavior says whether prices include taxes.
type TaxBehavior = money.TaxBehavior

// The behaviors of prices.
const (
	TaxExclusive = money.TaxExclusive
	TaxInclusive = money.TaxInclusive
)

// PriceTerms are what the lines of a document are priced by, besides their own fields.
type PriceTerms struct {
	Behavior      TaxBehavior
	DiscountTotal money.Amount // a fixed discount on the document; its currency is the document's
}

// Totals contains the terms of a document and the sums over its lines. Total is Subtotal minus Discount, plus Tax unless prices include
// it, plus Rounding. Rounding can be negative.
type Totals struct {
	PriceTerms

	Subtotal, Discount, Tax, Rounding, Total money.Amount

	Breakdown []money.TaxRow // Tax by name and rate, in the order of first use
}

// NoTerms returns the terms of a document with net prices and without a discount.
func NoTerms(currency string) PriceTerms {
	return PriceTerms{Behavior: TaxExclusive, DiscountTotal: money.Amount{Currency: currency}}
}

// Price returns the lines with their amounts, and the totals of their document. Discounts are rounded once per line, and taxes once per
// document, name and rate, to the smallest unit. The total is rounded once, so that a card can pay it. An amount or a discount that is
// too large is a 422 on its field.
func Price(lines []Line, terms PriceTerms) ([]Line, Totals, error) {
	currency := terms.DiscountTotal.Currency
	lines = slices.Clone(lines)
	for i := range lines {
		if err := lines[i].price(fmt.Sprintf("line_items.%d.", i), currency); err != nil {
			return nil, Totals{}, err
		}
	}
	if err := distributeDiscount(lines, terms.DiscountTotal); err != nil {
		return nil, Totals{}, err
	}
	taxed := make([]money.TaxLine, len(lines))
	for i, l := range lines {
		taxed[i] = money.TaxLine{Minor: l.Amounts.Net(), Taxes: l.Taxes}
	}
	taxes, err := money.Taxes(taxed, terms.Behavior == TaxInclusive, currency)
	if err != nil {
		return nil, Totals{}, fmt.Errorf("taxes: %w", err)
	}
	for i, share := range taxes.Lines {
		lines[i].Amounts.Tax = share
	}
	totals := Sum(lines, terms, taxes.Rows)
	payable, err := totals.Total.Rounded()
	if err != nil {
		return nil, Totals{}, err
	}
	totals = totals.Come(payable.Minor)
	if totals.Subtotal.Minor > maxTotal || totals.Total.Minor > maxTotal {
		return nil, Totals{}, apperr.Field("line_items", "The total must be at most 99,999,999,999.")
	}
	return lines, totals, nil
}

// Come returns the totals that come to a total. What the lines and taxes lack of it is Rounding.
func (t Totals) Come(total int64) Totals {
	t.Rounding.Minor += total - t.Total.Minor
	t.Total.Minor = total
	return t
}

// Sum adds up the amounts of lines that are priced already, without rounding.
func Sum(lines []Line, terms PriceTerms, breakdown []money.TaxRow) Totals {
	zero := money.Amount{Currency: terms.DiscountTotal.Currency}
	t := Totals{PriceTerms: terms, Subtotal: zero, Discount: zero, Tax: zero, Rounding: zero, Total: zero, Breakdown: breakdown}
	for _, l := range lines {
		t.Subtotal.Minor += l.Amounts.Amount
		t.Discount.Minor += l.Amounts.Discount
		t.Tax.Minor += l.Amounts.Tax
	}
	t.Total.Minor = t.Subtotal.Minor - t.Discount.Minor
	t.Total = terms.Behavior.Gross(t.Total, t.Tax.Minor)
	return t
}

// price sets the amount of the line, and its own discount.
func (l *Line) price(field, currency string) error {
	if l.UnitAmount > 0 && l.Quantity > maxTotal/l.UnitAmount {
		return apperr.Field(field+"unit_amount", "Multiplied by quantity, must be at most 99,999,999,999.")
	}
	amount := money.Amount{Minor: l.Quantity * l.UnitAmount, Currency: currency}
	discount, err := amount.Share(l.DiscountBps)
	if err != nil {
		return err
	}
	if l.FixedDiscount != nil {
		if discount.Minor = *l.FixedDiscount; discount.Minor > amount.Minor {
			return apperr.Field(field+"discount_amount", "Must be at most %s, the amount of the line.", amount)
		}
	}
	l.Amounts = LineAmounts{Amount: amount.Minor, Discount: discount.Minor}
	return nil
}

// distributeDiscount adds to the lines their shares of the document's discount, in proportion to their discounted amounts.
func distributeDiscount(lines []Line, discount money.Amount) error {
	weights, left := make([]int64, len(lines)), money.Amount{Currency: discount.Currency}
	for i, l := range lines {
		weights[i] = l.Amounts.Net()
		left.Minor += weights[i]
	}
	if discount.Minor > left.Minor {
		return apperr.Field("discount_amount_total", "Must be at most %s, the discounted amount of the lines.", left)
	}
	shares, err := discount.Allocate(weights)
	if err != nil {
		return fmt.Errorf("spread %s: %w", discount, err)
	}
	for i, share := range shares {
		lines[i].Amounts.Discount += share.Minor
	}
	return nil
}

// PriceInput holds the fields of a create or an update that determine the price of a document. An absent field stays unchanged.
type PriceInput struct {
	Lines         patch.Field[[]LineInput] // never null
	Behavior      patch.Field[TaxBehavior] // never null
	DiscountTotal patch.Field[money.Amount]
}

// Reprices reports whether the input changes the price of a document.
func (in PriceInput) Reprices() bool {
	return in.Lines.Given() || in.Behavior.Given() || in.DiscountTotal.Given()
}

// Untaxed reports whether a line of the input leaves its taxes to the defaults.
func (in PriceInput) Untaxed() bool {
	lines := in.Lines.Pointer()
	return lines != nil && slices.ContainsFunc(*lines, func(l LineInput) bool { return l.Taxes == nil && l.TaxRateBps == nil })
}

// TaxDefaults are what applies to a document that specifies no taxes.
type TaxDefaults struct {
	Behavior TaxBehavior // of a new document
	Taxes    []money.Tax // of a line without taxes
}

// price returns the lines and the totals of a document after the input, in a currency.
func (in PriceInput) price(lines []Line, terms PriceTerms, currency string, defaults []money.Tax) ([]Line, Totals, error) {
	var failed, discount error
	if given := in.Lines.Pointer(); given != nil {
		lines, failed = Lines(*given, currency, defaults)
	}
	in.Behavior.Set(&terms.Behavior)
	if in.DiscountTotal.Given() {
		terms.DiscountTotal = money.Amount{Currency: currency}
	}
	if given := in.DiscountTotal.Pointer(); given != nil {
		discount = sameCurrency("discount_amount_total.currency", *given, currency)
		terms.DiscountTotal.Minor = given.Minor
	} else if terms.DiscountTotal.IsZero() {
		terms.DiscountTotal.Currency = currency
	} else {
		discount = sameCurrency("discount_amount_total", terms.DiscountTotal, currency)
	}
	if err := apperr.Join(failed, discount); err != nil {
		return nil, Totals{}, err
	}
	return Price(lines, terms)
}
