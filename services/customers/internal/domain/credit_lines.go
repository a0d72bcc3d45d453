package domain

import (
	"holdfast.dev/libs/apperr"
)

// creditLines returns the lines and totals of a credit note of the invoice.
func (v Invoice) creditLines(in CreditNoteInput) ([]Line, Totals, error) {
	left := v.Uncredited()
	var lines []Line
	var err error
	switch {
	case in.Lines.Given():
		if lines, err = Lines(*in.Lines.Pointer(), v.Total.Currency); err != nil {
			return nil, Totals{}, err
		}
	case in.Amount == nil && v.Credited == 0:
		lines = v.Lines
	default:
		amount := left.Minor
		if in.Amount != nil {
			amount = in.Amount.Minor
		}
		lines = []Line{{Description: "Credit", Quantity: 1, UnitAmount: amount}}
	}
	totals, err := Sum(lines, v.Total.Currency)
	if err != nil {
		return nil, Totals{}, err
	}
	switch {
	case left.IsZero():
		return nil, Totals{}, apperr.Field("amount", "Nothing is left to credit.")
	case totals.Total.Minor > left.Minor:
		return nil, Totals{}, apperr.Field("amount", "Must be at most %d, the part of the total that is not credited yet.", left.Minor)
	case totals.Total.IsZero():
		return nil, Totals{}, apperr.Field("line_items", "The total must be at least 1.")
	}
	return lines, totals, nil
}
