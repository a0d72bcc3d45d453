package domain

import (
	"errors"
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
		return v.creditInput(n, *in.Lines.Pointer(), left)
	case in.Amount != nil && in.Amount.Minor > rest.Minor:
		return nil, errCredit(rest)
	case in.Amount != nil && in.Amount.Minor < rest.Minor:
		rest = *in.Amount
		gross := money.Amount{Minor: max(0, min(rest.Minor, left.Gross())), Currency: rest.Currency} // less if the rest is a rounding
		if left, err = left.split(gross); err != nil {
			return nil, err
		}
	case v.Credited == 0:
		n.Lines, n.Totals = v.Lines, v.Totals
		return left, nil
	}
	shown := slices.DeleteFunc(slices.Clone(left), func(p Part) bool { return p.Gross() == 0 && p.Net == 0 })
	if len(shown) == 0 {
		shown = Parts{{}} // only a rounding is left
	}
	n.Lines, n.Totals = shown.inclusiveLines(func(Part) string { return in.Wording.CreditLine(*v.Number) }, rest.Currency)
	n.Totals = n.Come(rest.Minor)
	return left, nil
}

// errCredit is the response to a credit note for more than is left.
func errCredit(rest money.Amount) error {
	return apperr.Field("amount", "Must be at most %d, the part of the total that is not credited yet.", rest.Minor)
}

// creditInput sets lines that a client sends. Their taxes must be those of the invoice, and what they credit of each set of taxes must be
// at most what is left of it.
func (v Invoice) creditInput(n *CreditNote, in []LineInput, left Parts) (Parts, error) {
	behavior, rest := v.Behavior, v.Uncredited()
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
	after, err := v.uncreditedAfter(left.plus(-1, parts))
	if err != nil {
		return nil, err
	}
	n.Lines, n.Totals = lines, Sum(lines, totals.PriceTerms, parts.Rows()).Come(rest.Minor-min(after, rest.Minor))
	switch {
	case n.Total.Minor > rest.Minor:
		return nil, apperr.Field("line_items", "The total must be at most %s, the part of the invoice that is not credited yet.", rest)
	case n.Total.Minor <= 0:
		return nil, apperr.Field("line_items", "The total must be at least %s.", money.Amount{Minor: money.Step(rest.Currency), Currency: rest.Currency})
	case n.Total == rest && !left.plus(-1, parts).empty():
		return nil, apperr.Field("line_items", "The total is what is left, but the taxes are not. Omit line_items to credit what is left.")
	}
	return parts, nil
}

// uncreditedAfter returns the part of the total that is not credited if these parts of the invoice are left. It is rounded like the total,
// so that credit notes add up to it in any order. It is negative if they credit more than the total.
func (v Invoice) uncreditedAfter(left Parts) (int64, error) {
	if left.empty() {
		return 0, nil
	}
	after, failed := money.Amount{Minor: left.Gross(), Currency: v.Total.Currency}.Rounded()
	others, err := v.roundingOfOthers()
	return after.Minor + others, errors.Join(failed, err)
}

// roundingOfOthers returns the part of the total that is the rounding of the invoices that a balance deducts.
func (v Invoice) roundingOfOthers() (int64, error) {
	own, err := money.Amount{Minor: v.Total.Minor - v.Rounding.Minor, Currency: v.Total.Currency}.Rounded()
	return v.Total.Minor - own.Minor, err
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
