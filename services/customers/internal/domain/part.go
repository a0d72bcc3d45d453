package domain

import (
	"fmt"
	"slices"

	"holdfast.dev/libs/money"
)

// Part is the part of a document that has one set of taxes, in the smallest unit of its currency. It is stored as JSON.
type Part struct {
	Taxes   []money.Tax `json:"taxes"`
	Net     int64       `json:"net"`
	Amounts []int64     `json:"amounts"` // of Taxes
}

// Tax returns the sum of the taxes of the part.
func (p Part) Tax() (sum int64) {
	for _, amount := range p.Amounts {
		sum += amount
	}
	return sum
}

// Gross returns the amount of the part including its taxes.
func (p Part) Gross() int64 { return p.Net + p.Tax() }

// Parts is a document by sets of taxes, in the order of first use.
type Parts []Part

// Gross returns the sum of the parts, which is the total of the document without its rounding.
func (ps Parts) Gross() (sum int64) {
	for _, p := range ps {
		sum += p.Gross()
	}
	return sum
}

// empty reports whether every net amount and every tax is 0.
func (ps Parts) empty() bool {
	return !slices.ContainsFunc(ps, func(p Part) bool {
		return p.Net != 0 || slices.ContainsFunc(p.Amounts, func(a int64) bool { return a != 0 })
	})
}

// find returns the index of the part with a set of taxes in any order, or -1.
func (ps Parts) find(taxes []money.Tax) int {
	return slices.IndexFunc(ps, func(p Part) bool {
		return len(p.Taxes) == len(taxes) && !slices.ContainsFunc(taxes, func(t money.Tax) bool { return !slices.Contains(p.Taxes, t) })
	})
}

// plus returns the parts with other ones added, or subtracted if sign is -1.
func (ps Parts) plus(sign int64, other Parts) Parts {
	out := make(Parts, len(ps), len(ps)+len(other))
	for i, p := range ps {
		p.Amounts = slices.Clone(p.Amounts)
		out[i] = p
	}
	for _, o := range other {
		i := out.find(o.Taxes)
		if i < 0 {
			i, out = len(out), append(out, Part{Taxes: o.Taxes, Amounts: make([]int64, len(o.Taxes))})
		}
		out[i].Net += sign * o.Net
		for n, tax := range o.Taxes {
			out[i].Amounts[slices.Index(out[i].Taxes, tax)] += sign * o.Amounts[n]
		}
	}
	return out
}

// Rows returns the breakdown by name and rate.
func (ps Parts) Rows() []money.TaxRow {
	var rows []money.TaxRow
	for _, p := range ps {
		for n, tax := range p.Taxes {
			i := slices.IndexFunc(rows, func(r money.TaxRow) bool { return r.Tax == tax })
			if i < 0 {
				i, rows = len(rows), append(rows, money.TaxRow{Tax: tax})
			}
			rows[i].Taxable += p.Net
			rows[i].Amount += p.Amounts[n]
		}
	}
	return rows
}

// Taxes returns the taxes of all parts, each once.
func (ps Parts) Taxes() (list []money.Tax) {
	for _, r := range ps.Rows() {
		list = append(list, r.Tax)
	}
	return list
}

// PartsOf returns the parts of priced lines, which add up to the document. It computes the taxes of the lines again, because a document
// stores only their sum for each line.
func PartsOf(lines []Line, t Totals) (Parts, error) {
	var out Parts
	taxed, place := make([]money.TaxLine, len(lines)), make([]int, len(lines))
	for i, l := range lines {
		taxed[i] = money.TaxLine{Minor: l.Amounts.Net(), Taxes: l.Taxes}
		if place[i] = out.find(l.Taxes); place[i] < 0 {
			place[i], out = len(out), append(out, Part{Taxes: l.Taxes, Amounts: make([]int64, len(l.Taxes))})
		}
		out[place[i]].Net += l.Amounts.Net()
		if t.Behavior == TaxInclusive {
			out[place[i]].Net -= l.Amounts.Tax
		}
	}
	taxes, err := money.Taxes(taxed, t.Behavior == TaxInclusive, t.Total.Currency)
	if err != nil {
		return nil, fmt.Errorf("parts of a document: %w", err)
	}
	for r, row := range t.Breakdown {
		for i := range lines {
			p := out[place[i]]
			if n := slices.Index(p.Taxes, row.Tax); n >= 0 {
				p.Amounts[n] += taxes.Shares[r][i]
			}
		}
	}
	return out, nil
}

// split returns the parts of an amount that includes taxes. It is spread over the parts in proportion to their gross amounts, and
// takes no more of the net amount and of each tax than they have. The amount must be at most their sum.
func (ps Parts) split(amount money.Amount) (Parts, error) {
	weights := make([]int64, len(ps))
	for i, p := range ps {
		weights[i] = max(0, p.Gross())
	}
	shares, err := amount.Allocate(weights)
	if err != nil {
		return nil, fmt.Errorf("spread %s: %w", amount, err)
	}
	var out Parts
	for i, p := range ps {
		if shares[i].IsZero() {
			continue
		}
		part, err := p.take(shares[i])
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

// take returns the part of an amount that includes taxes. Its taxes are those of the amount, rounded once, as far as the part has them.
func (p Part) take(amount money.Amount) (Part, error) {
	taxes, err := money.Taxes([]money.TaxLine{{Minor: amount.Minor, Taxes: p.Taxes}}, true, amount.Currency)
	if err != nil {
		return Part{}, fmt.Errorf("taxes of %s: %w", amount, err)
	}
	out := Part{Taxes: p.Taxes, Net: amount.Minor, Amounts: make([]int64, len(p.Taxes))}
	for n, row := range taxes.Rows {
		out.Amounts[n] = min(row.Amount, p.Amounts[n])
		out.Net -= out.Amounts[n]
	}
	for n := range out.Amounts { // what the net amount does not have is tax
		more := max(0, min(out.Net-p.Net, p.Amounts[n]-out.Amounts[n]))
		out.Amounts[n], out.Net = out.Amounts[n]+more, out.Net-more
	}
	return out, nil
}

// inclusiveLines returns one line per part, with prices that include taxes, and their totals.
func (ps Parts) inclusiveLines(describe func(Part) string, currency string) ([]Line, Totals) {
	lines := make([]Line, len(ps))
	for i, p := range ps {
		gross := p.Gross()
		lines[i] = Line{
			Description: describe(p), Quantity: 1, UnitAmount: gross, Taxes: p.Taxes, Amounts: LineAmounts{Amount: gross, Tax: p.Tax()},
		}
	}
	terms := PriceTerms{Behavior: TaxInclusive, DiscountTotal: money.Amount{Currency: currency}}
	return lines, Sum(lines, terms, ps.Rows())
}
