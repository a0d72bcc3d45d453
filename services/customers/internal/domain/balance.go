package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
)

// MaxDeducted limits the invoices that a balance deducts.
const MaxDeducted = 100

// depositLines returns the lines of a deposit invoice: one per set of taxes of the quote. The deposit includes taxes. It is spread over
// them in proportion to their gross amounts.
func depositLines(q InvoiceSource) ([]Line, Totals, error) {
	parts, err := PartsOf(q.Lines, q.Totals)
	if err != nil {
		return nil, Totals{}, err
	}
	weights := make([]int64, len(parts))
	for i, p := range parts {
		weights[i] = max(0, p.Gross())
	}
	currency := q.Totals.Total.Currency
	shares, err := money.Amount{Minor: q.Deposit, Currency: currency}.Allocate(weights)
	if err != nil {
		return nil, Totals{}, err
	}
	var lines []Line
	for i, p := range parts {
		if !shares[i].IsZero() {
			lines = append(lines, Line{Description: q.Wording.DepositLine(q.Number), Quantity: 1, UnitAmount: shares[i].Minor, Taxes: p.Taxes})
		}
	}
	return Price(lines, PriceTerms{Behavior: TaxInclusive, DiscountTotal: money.Amount{Currency: currency}})
}

// Balance is what the platform writes the lines of a balance from.
type Balance struct {
	Quote    *Quote    // the accepted quote of the booking; nil: the booking has none
	Deducted []Invoice // its opened invoices that are not void, the oldest first
}

// Total returns the amount that all invoices of the booking together charge.
func (b Balance) Total(booking Booking) money.Amount {
	if b.Quote != nil {
		return b.Quote.Total
	}
	return booking.Total
}

// Left returns the part of the total that no opened invoice charges yet. A credited amount can be charged again.
func (b Balance) Left(booking Booking) int64 {
	left := b.Total(booking).Minor
	for _, v := range b.Deducted {
		left -= v.Uncredited().Minor
	}
	return left
}

// sold returns the lines of the quote or, without one, a line of the booking's package with the taxes of the booking. If the taxes
// of the booking are not known, its price includes the default taxes.
func (b Balance) sold(booking Booking, taxes []money.Tax, wording Wording) ([]Line, Totals, error) {
	if b.Quote != nil {
		return slices.Clone(b.Quote.Lines), b.Quote.Totals, nil
	}
	name := booking.Package
	if name == "" {
		name = wording.BookingLine(booking.Number)
	}
	price := BookingPrice{Minor: booking.Total.Minor, Behavior: TaxInclusive, Taxes: taxes}
	if booking.Price != nil {
		price = *booking.Price
	}
	line := packageLine(name, price.Minor, booking.Guests, price.Taxes)
	return Price([]Line{line}, PriceTerms{Behavior: price.Behavior, DiscountTotal: money.Amount{Currency: booking.Total.Currency}})
}

// setBalance sets the lines of a new balance.
func (v *Invoice) setBalance(in InvoiceInput, refs InvoiceRefs, zone *time.Location) error {
	switch {
	case in.Behavior.Given():
		return apperr.Field("tax_behavior", "Must not be sent without line_items for a balance. It is that of the quote.")
	case in.DiscountTotal.Given():
		return apperr.Field("discount_amount_total", "Must not be sent without line_items for a balance. It is that of the quote.")
	}
	return v.writeBalance(refs.Balance, *refs.Booking, refs.Defaults.Taxes, refs.Wording, zone)
}

// writeBalance sets the lines of a balance: what is sold, and one negative line for each earlier invoice. Over all invoices of the
// booking, each row of the breakdown adds up to that of the quote. taxes are those of a booking without a quote.
func (v *Invoice) writeBalance(b Balance, booking Booking, taxes []money.Tax, wording Wording, zone *time.Location) error {
	switch {
	case b.Left(booking) <= 0:
		return apperr.Field("booking_id", "Nothing is left to invoice.")
	case len(b.Deducted) > MaxDeducted:
		return apperr.Field("booking_id", "A balance deducts at most %d invoices. Send line_items.", MaxDeducted)
	}
	lines, totals, err := b.sold(booking, taxes, wording)
	if err != nil {
		return err
	}
	parts, err := PartsOf(lines, totals)
	if err != nil {
		return err
	}
	total := totals.Total.Minor
	for _, earlier := range b.Deducted {
		charged, err := earlier.left()
		if err != nil {
			return err
		}
		if earlier.Uncredited().IsZero() {
			continue
		}
		line := earlier.deduction(charged, totals.Behavior)
		line.Description = wording.DeductionLine(*earlier.Number, civil.DateOf(earlier.OpenedAt.In(zone)))
		lines, parts = append(lines, line), parts.plus(-1, charged)
		total -= earlier.Uncredited().Minor
	}
	v.Lines, v.Totals, v.Parts = lines, Sum(lines, totals.PriceTerms, parts.Rows()).Come(total), parts
	return nil
}

// deduction returns the line of a balance that deducts the invoice, without its description.
func (v Invoice) deduction(charged Parts, behavior TaxBehavior) Line {
	var tax int64
	for _, p := range charged {
		tax -= p.Tax()
	}
	amount := -charged.Gross()
	if behavior != TaxInclusive {
		amount -= tax
	}
	return Line{Quantity: 1, UnitAmount: amount, Taxes: charged.Taxes(), Amounts: LineAmounts{Amount: amount, Tax: tax}}
}

// WrittenBalance reports whether the invoice is a balance whose lines the platform wrote.
func (v Invoice) WrittenBalance() bool {
	return v.Kind == BalanceInvoice && v.Parts != nil
}

// Rebalanced returns a balance with the lines that the platform writes now: since it was drafted, other invoices of the booking may have
// been opened, or the total may have changed. A booking without a quote has the taxes of the draft.
func (v Invoice) Rebalanced(b Balance, booking Booking, wording Wording, zone *time.Location) (Invoice, error) {
	err := v.writeBalance(b, booking, v.Lines[0].Taxes, wording, zone)
	return v, err
}
