package domain

import (
	"fmt"
	"slices"
	"strings"

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

// creditInput sets lines that a client sends. Their taxes must be those of the invoice, and what they credit of each set of taxes must be
// at most what is left of it.
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
		if parts[i], err = left[left.find(parts[i].Taxes)].credit(parts[i], behavior, rest.Currency); err != nil {
			return nil, err
		}
		if err := parts[i].allocateTax(lines, rest.Currency); err != nil {
			return nil, err
		}
	}
	n.Lines, n.Totals = lines, Sum(lines, totals.PriceTerms, parts.Rows())
	switch {
	case n.Total.Minor > rest.Minor:
		return nil, apperr.Field("line_items", "The total must be at most %s, the part of the invoice that is not credited yet.", rest)
	case n.Total.Minor <= 0:
		return nil, apperr.Field("line_items", "The total must be at least 1.")
	case n.Total == rest && !left.plus(-1, parts).empty():
		return nil, apperr.Field("line_items", "The total is what is left, but the taxes are not. Omit line_items to credit what is left.")
	}
	return parts, nil
}

// credit returns what a credit note with the lines of part credits of what is left. The lines must have at most what is left of the
// prices that the behavior describes. Of each tax, the credit note takes at most what is left, and everything with the last net amount.
func (p Part) credit(part Part, behavior TaxBehavior, currency string) (Part, error) {
	amount, left := money.Amount{Minor: part.Net, Currency: currency}, money.Amount{Minor: p.Net, Currency: currency}
	if behavior == TaxInclusive {
		amount.Minor, left.Minor = part.Gross(), p.Gross()
	}
	switch {
	case amount.IsZero():
		return part, nil
	case amount.Minor > left.Minor:
		left.Minor = max(0, left.Minor)
		return Part{}, apperr.Field("line_items", "The lines with %s must be at most %s, the part of them that is not credited yet.", taxNames(p.Taxes), left)
	case behavior == TaxInclusive:
		return p.take(amount)
	}
	for n, tax := range part.Taxes {
		if of := p.Amounts[slices.Index(p.Taxes, tax)]; part.Net == p.Net || part.Amounts[n] > of {
			part.Amounts[n] = of
		}
	}
	return part, nil
}

// taxNames returns the taxes as a text, such as "GST 5%, QST 9.975%".
func taxNames(taxes []money.Tax) string {
	if len(taxes) == 0 {
		return "no taxes"
	}
	names := make([]string, len(taxes))
	for i, tax := range taxes {
		names[i] = tax.Name + " " + tax.Rate.String() + "%"
	}
	return strings.Join(names, ", ")
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
