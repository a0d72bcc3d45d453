package domain

import (
	"fmt"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
)

// Line is a line of a quote or an invoice.
type Line struct {
	Description   string
	Quantity      int64
	UnitAmount    int64 // in the smallest unit of the document's currency, like all amounts of a line
	DiscountBps   int64
	FixedDiscount *int64 // instead of DiscountBps; nil: none
	Taxes         []money.Tax
	Amounts       LineAmounts // set by Price
}

// LineAmounts are the amounts of a line in its document.
type LineAmounts struct {
	Amount   int64 // quantity × unit amount
	Discount int64 // of Amount, with the line's share of the document's discount
	Tax      int64 // the line's shares of the taxes on Amount without Discount
}

// Net returns the amount without the discount. It includes the taxes if prices do.
func (a LineAmounts) Net() int64 { return a.Amount - a.Discount }

// TaxRateBps returns the sum of the rates in basis points. exact is false if it is no whole number of them.
func (l Line) TaxRateBps() (bps int64, exact bool) {
	var sum money.Rate
	for _, tax := range l.Taxes {
		sum += tax.Rate
	}
	return sum.Bps()
}

// shortTax is the name of a tax that is given as tax_rate_bps.
const shortTax = "Tax"

// ShortTaxes returns the taxes that tax_rate_bps stands for.
func ShortTaxes(bps int64) []money.Tax {
	if bps == 0 {
		return nil
	}
	return []money.Tax{{Name: shortTax, Rate: money.RateOfBps(bps)}}
}

// packageLine returns the line of a package. A price for guests is printed as their number times the price for one of them, unless the
// total was rounded and is no multiple of their number.
func packageLine(name string, total int64, guests *int, taxes []money.Tax) Line {
	line := Line{Description: name, Quantity: 1, UnitAmount: total, Taxes: taxes}
	if guests == nil || *guests <= 1 {
		return line
	}
	if n := int64(*guests); n <= maxQuantity && total%n == 0 {
		line.Quantity, line.UnitAmount = n, total/n
	} else {
		line.Description = fmt.Sprintf("%s × %d", name, n)
	}
	return line
}

// maxQuantity is the largest quantity of a line in the contract.
const maxQuantity = 10_000

// LineInput is a line as a client sends it, within the bounds of the contract. Absent fields are nil.
type LineInput struct {
	Description string
	Quantity    int64
	UnitAmount  money.Amount
	DiscountBps *int64
	Discount    *money.Amount
	Taxes       *[]money.TaxInput
	TaxRateBps  *int64
}

// Lines returns the lines of an input, not priced yet. Lines without taxes get the default ones. Every failed field is reported, in the
// contract's order.
func Lines(in []LineInput, currency string, defaults []money.Tax) ([]Line, error) {
	var failed []error
	out := make([]Line, len(in))
	for i, l := range in {
		field := fmt.Sprintf("line_items.%d.", i)
		out[i] = Line{Description: l.Description, Quantity: l.Quantity, UnitAmount: l.UnitAmount.Minor, Taxes: defaults}
		failed = append(failed, sameCurrency(field+"unit_amount.currency", l.UnitAmount, currency), out[i].discount(field, l, currency))
		switch {
		case l.Taxes != nil && l.TaxRateBps != nil:
			failed = append(failed, apperr.Field(field+"taxes", "Cannot be combined with tax_rate_bps."))
		case l.Taxes != nil:
			var err error
			out[i].Taxes, err = money.ParseTaxes(field+"taxes", *l.Taxes)
			failed = append(failed, err)
		case l.TaxRateBps != nil:
			out[i].Taxes = ShortTaxes(*l.TaxRateBps)
		}
	}
	if err := apperr.Join(failed...); err != nil {
		return nil, err
	}
	return out, nil
}

// discount sets the discount of a line.
func (l *Line) discount(field string, in LineInput, currency string) error {
	if in.DiscountBps != nil {
		l.DiscountBps = *in.DiscountBps
	}
	if in.Discount == nil {
		return nil
	}
	if in.DiscountBps != nil {
		return apperr.Field(field+"discount_amount", "Cannot be combined with discount_bps.")
	}
	if err := sameCurrency(field+"discount_amount.currency", *in.Discount, currency); err != nil {
		return err
	}
	l.FixedDiscount = &in.Discount.Minor
	return nil
}
