package domain

import (
	"fmt"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
)

// left returns the parts of the invoice that no credit note has credited.
func (v Invoice) left() (Parts, error) {
	parts := v.Parts
	if parts == nil {
		var err error
		if parts, err = PartsOf(v.Lines, v.Totals); err != nil {
			return nil, err
		}
	}
	return parts.plus(-1, v.CreditedParts), nil
}

// creditLines sets the lines and totals of a credit note of the invoice, and returns what it credits.
func (v Invoice) creditLines(n *CreditNote, in CreditNoteInput) (Parts, error) {
	left, err := v.left()
	if err != nil {
		return nil, err
	}
	rest := v.Uncredited()
	switch {
	case rest.IsZero():
		return nil, apperr.Field("amount", "Nothing is left to credit.")
	case in.Lines.Given():
		return n.creditInput(*in.Lines.Pointer(), v.Behavior, left, rest)
	case in.Amount != nil && in.Amount.Minor > rest.Minor:
		return nil, errCredit(rest)
	case in.Amount != nil && in.Amount.Minor < rest.Minor:
		if left, err = left.split(*in.Amount); err != nil {
			return nil, err
		}
	case v.Credited == 0:
		n.Lines, n.Totals = v.Lines, v.Totals
		return left, nil
	}
	left = slices.DeleteFunc(left, func(p Part) bool { return p.Gross() == 0 && p.Net == 0 })
	n.Lines, n.Totals = left.inclusiveLines(func(Part) string { return in.Wording.CreditLine(*v.Number) }, rest.Currency)
	return left, nil
}

// errCredit is the response to a credit note for more than is left.
func errCredit(rest money.Amount) error {
	return apperr.Field("amount", "Must be at most %d, the part of the total that is not credited yet.", rest.Minor)
}

// creditInput sets lines that a client sends. Their taxes must be those of the invoice. What rounding adds to an amount beyond
// what is left of it is moved or cut.
func (n *CreditNote) creditInput(in []LineInput, behavior TaxBehavior, left Parts, rest money.Amount) (Parts, error) {
	var defaults []money.Tax
	for i, l := range in {
		switch {
		case l.Taxes != nil || l.TaxRateBps != nil:
		case len(left) == 1:
			defaults = left[0].Taxes
		default:
			return nil, apperr.Field(fmt.Sprintf("line_items.%d.taxes", i), "Is required because the lines of the invoice have different taxes.")
		}
	}
	lines, err := Lines(in, rest.Currency, defaults)
	if err != nil {
		return nil, err
	}
	for i, l := range lines {
		if left.find(l.Taxes) < 0 {
			return nil, apperr.Field(fmt.Sprintf("line_items.%d.taxes", i), "Must be the taxes of a line of the invoice.")
		}
	}
	lines, totals, err := Price(lines, PriceTerms{Behavior: behavior, DiscountTotal: money.Amount{Currency: rest.Currency}})
	if err != nil {
		return nil, err
	}
	parts, err := PartsOf(lines, totals)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		of := left[left.find(parts[i].Taxes)]
		if behavior == TaxInclusive && parts[i].Gross() <= of.Gross() {
			parts[i], err = of.take(money.Amount{Minor: parts[i].Gross(), Currency: rest.Currency})
		} else {
			err = parts[i].cut(of, rest)
		}
		if err == nil {
			err = parts[i].allocateTax(lines, rest.Currency)
		}
		if err != nil {
			return nil, err
		}
	}
	n.Lines, n.Totals = lines, Sum(lines, totals.PriceTerms, parts.Rows())
	switch {
	case n.Total.Minor > rest.Minor:
		return nil, errCredit(rest)
	case n.Total.IsZero():
		return nil, apperr.Field("line_items", "The total must be at least 1.")
	}
	return parts, nil
}

// cut reduces each tax of the part to what is left of it. A net amount that exceeds what is left is an error.
func (p *Part) cut(left Part, rest money.Amount) error {
	if p.Net > left.Net {
		return errCredit(rest)
	}
	for n, tax := range p.Taxes {
		p.Amounts[n] = min(p.Amounts[n], left.Amounts[slices.Index(left.Taxes, tax)])
	}
	return nil
}

// allocateTax sets the shares that the lines of the part have of its taxes.
func (p Part) allocateTax(lines []Line, currency string) error {
	weights := make([]int64, len(lines))
	for i, l := range lines {
		if (Parts{p}).find(l.Taxes) == 0 {
			weights[i] = l.Amounts.Net()
		}
	}
	shares, err := money.Amount{Minor: p.Tax(), Currency: currency}.Allocate(weights)
	if err != nil {
		return fmt.Errorf("allocate taxes: %w", err)
	}
	for i, share := range shares {
		if weights[i] > 0 {
			lines[i].Amounts.Tax = share.Minor
		}
	}
	return nil
}
