package domain

import (
	"errors"
	"fmt"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
)

// maxTotal is the largest amount of a Price in the contract, in the smallest unit of any currency.
const maxTotal = 99_999_999_999

// Line is a line of a quote or an invoice as a client sends it. It is stored as JSON.
type Line struct {
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitAmount  int64  `json:"unit_amount"` // in the smallest unit of the document's currency
	DiscountBps int64  `json:"discount_bps"`
	TaxRateBps  int64  `json:"tax_rate_bps"`
}

// LineAmounts are the amounts of a line, each rounded once as package money rounds, so that a card can pay their sums.
type LineAmounts struct {
	Amount   money.Amount // quantity × unit amount
	Discount money.Amount // of Amount
	Tax      money.Amount // of Amount without Discount
}

// Totals contains the sums over the lines of a document. Total is Subtotal minus Discount plus Tax.
type Totals struct{ Subtotal, Discount, Tax, Total money.Amount }

// Amounts returns the amounts of the line in a currency.
func (l Line) Amounts(currency string) (LineAmounts, error) {
	if l.UnitAmount > 0 && l.Quantity > maxTotal/l.UnitAmount {
		return LineAmounts{}, errTotal
	}
	var out LineAmounts
	var err error
	if out.Amount, err = (money.Amount{Minor: l.Quantity * l.UnitAmount, Currency: currency}).Rounded(); err != nil {
		return LineAmounts{}, err
	}
	if out.Discount, err = out.Amount.MulBps(l.DiscountBps); err != nil {
		return LineAmounts{}, err
	}
	net, err := out.Amount.Sub(out.Discount)
	if err != nil {
		return LineAmounts{}, err
	}
	out.Tax, err = net.MulBps(l.TaxRateBps)
	return out, err
}

// errTotal reports that an amount exceeds the maximum of the contract.
var errTotal = errors.New("the amount is too large")

// Sum adds up the lines of a document. A sum above the largest amount is a 422 on line_items.
func Sum(lines []Line, currency string) (Totals, error) {
	zero := money.Amount{Currency: currency}
	t := Totals{Subtotal: zero, Discount: zero, Tax: zero}
	for i, l := range lines {
		a, err := l.Amounts(currency)
		if errors.Is(err, errTotal) {
			return Totals{}, apperr.Field(fmt.Sprintf("line_items.%d.unit_amount", i), "Multiplied by quantity, must be at most 99,999,999,999.")
		}
		if err != nil {
			return Totals{}, err
		}
		t.Subtotal.Minor += a.Amount.Minor
		t.Discount.Minor += a.Discount.Minor
		t.Tax.Minor += a.Tax.Minor
	}
	t.Total = money.Amount{Minor: t.Subtotal.Minor - t.Discount.Minor + t.Tax.Minor, Currency: currency}
	if t.Subtotal.Minor > maxTotal || t.Total.Minor > maxTotal {
		return Totals{}, apperr.Field("line_items", "The total must be at most 99,999,999,999.")
	}
	return t, nil
}

// LineInput is a line as a client sends it. Its currency is not checked yet.
type LineInput struct {
	Line

	Currency string
}

// Lines returns the lines of an input. A currency other than the tenant's is a 422 on the line.
func Lines(in []LineInput, currency string) ([]Line, error) {
	var failed []apperr.FieldError
	out := make([]Line, len(in))
	for i, l := range in {
		out[i] = l.Line
		if l.Currency != currency {
			failed = append(failed, apperr.FieldError{
				Field: fmt.Sprintf("line_items.%d.unit_amount.currency", i), Message: "Must be " + currency + ", the operator's currency.",
			})
		}
	}
	if len(failed) > 0 {
		return nil, apperr.Fields(failed)
	}
	return out, nil
}
