package money

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/libs/apperr"
)

const (
	// MaxRate is a tax of 100%.
	MaxRate Rate = 1_000_000
	// rateDecimals is the number of decimals of a percentage that a Rate can hold.
	rateDecimals = 4
)

// Rate is the rate of a tax in ten-thousandths of one percent, from 0 to MaxRate: 8.875% is 88,750. Its text form, in JSON as well,
// is the percentage as a decimal without needless zeros: "8.875".
type Rate int64

// ParseRate reads a percentage from 0 to 100 with at most four decimals, such as "8.875". It returns ErrFormat for any other text.
func ParseRate(text string) (Rate, error) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if !isDigits(whole) || len(whole) > 3 || dotted && !isDigits(fraction) || len(fraction) > rateDecimals {
		return 0, fmt.Errorf("%w: rate %q", ErrFormat, text)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", rateDecimals-len(fraction)), 10, 64)
	if err != nil || Rate(n) > MaxRate {
		return 0, fmt.Errorf("%w: rate %q", ErrFormat, text)
	}
	return Rate(n), nil
}

// RateOfBps returns the rate of a number of basis points.
func RateOfBps(bps int64) Rate { return Rate(bps) * MaxRate / Whole }

// Bps returns the rate in basis points. exact is false if it is no whole number of them.
func (r Rate) Bps() (bps int64, exact bool) {
	const one = MaxRate / Whole
	return int64(r / one), r%one == 0
}

// String returns the percentage as a decimal without needless zeros.
func (r Rate) String() string {
	text := Amount{Minor: int64(r)}.Decimal(rateDecimals)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// Tax is a tax with the name that documents show.
type Tax struct {
	Name string `json:"name"`
	Rate Rate   `json:"rate"`
}

// TaxInput is a tax as a client sends it.
type TaxInput struct{ Name, Rate string }

// ParseTaxes returns the taxes of the list in a field of a request. A rate that is no percentage, and a tax that is listed twice, are a
// 422 on it.
func ParseTaxes(field string, in []TaxInput) ([]Tax, error) {
	out := make([]Tax, len(in))
	for i, tax := range in {
		rate, err := ParseRate(tax.Rate)
		if err != nil {
			return nil, apperr.Field(fmt.Sprintf("%s.%d.rate", field, i), "Must be a decimal from 0 to 100 with at most 4 decimals.")
		}
		out[i] = Tax{Name: tax.Name, Rate: rate}
		if slices.Contains(out[:i], out[i]) {
			return nil, apperr.Field(fmt.Sprintf("%s.%d.name", field, i), "Must not be listed twice with the same rate.")
		}
	}
	return out, nil
}

// TaxLine is a line of a document: its amount after discounts, in minor units and not negative, and its taxes, each once.
type TaxLine struct {
	Minor int64
	Taxes []Tax
}

// TaxBehavior says whether prices include taxes.
type TaxBehavior string

// The behaviors of prices.
const (
	TaxExclusive TaxBehavior = "exclusive"
	TaxInclusive TaxBehavior = "inclusive"
)

// Gross returns what a price comes to with its tax, in minor units: the price itself if it includes the tax.
func (b TaxBehavior) Gross(price Amount, tax int64) Amount {
	if b != TaxInclusive {
		price.Minor += tax
	}
	return price
}

// TaxRow is the tax of one name and rate in a document, in minor units.
type TaxRow struct {
	Tax

	Taxable int64 `json:"taxable"` // the net amounts of the lines with this tax
	Amount  int64 `json:"amount"`
}

// Taxation contains the taxes of a document. The amounts of Rows and the taxes of Lines have the same sum.
type Taxation struct {
	Rows   []TaxRow  // in the order of first use
	Lines  []int64   // the taxes of each line, in minor units
	Shares [][]int64 // of each row: the share of each line, in minor units
}

// Total returns the sum of the rows.
func (t Taxation) Total() int64 { return SumRows(t.Rows) }

// SumRows returns the sum of the taxes of rows, in minor units.
func SumRows(rows []TaxRow) (sum int64) {
	for _, r := range rows {
		sum += r.Amount
	}
	return sum
}

// Taxes computes the taxes of a document as EN 16931 does. The amount of each row is the exact tax on all of its lines, rounded once,
// half away from zero, to a minor unit. It therefore depends neither on the order of the lines nor on how they
// are split. Each row is allocated to its lines by the largest remainder. Taxes do not compound. If the amounts of the lines are net, a
// tax is its rate of the amount. If they include the taxes, it is its rate of the amount, divided by 100% plus all rates of the line,
// and the net amount of a line is what its taxes leave. Taxes returns ErrOverflow if an amount is negative or a sum exceeds 64 bits.
func Taxes(lines []TaxLine, inclusive bool, currency string) (Taxation, error) {
	out := Taxation{Lines: make([]int64, len(lines))}
	rows := taxedLines(lines)
	for _, row := range rows {
		amount, shares, err := row.tax(lines, inclusive, currency)
		if err != nil {
			return Taxation{}, err
		}
		byLine := make([]int64, len(lines))
		for i, share := range shares {
			byLine[row.lines[i]] = share
			out.Lines[row.lines[i]] += share
		}
		out.Shares = append(out.Shares, byLine)
		out.Rows = append(out.Rows, TaxRow{Tax: row.Tax, Amount: amount})
	}
	for i, row := range rows {
		for _, l := range row.lines {
			net := lines[l].Minor
			if inclusive {
				net -= out.Lines[l]
			}
			out.Rows[i].Taxable += net
		}
	}
	return out, nil
}

// taxed is a tax with the indexes of the lines that have it.
type taxed struct {
	Tax

	lines []int
}

// taxedLines returns the taxes of a document in the order of first use.
func taxedLines(lines []TaxLine) []taxed {
	var out []taxed
	place := map[Tax]int{}
	for i, l := range lines {
		for _, tax := range l.Taxes {
			n, ok := place[tax]
			if !ok {
				n = len(out)
				place[tax], out = n, append(out, taxed{Tax: tax})
			}
			out[n].lines = append(out[n].lines, i)
		}
	}
	return out
}

// tax returns the tax on all of the lines, rounded once, and the share of each line, both in minor units. The exact tax of a line is
// rate × amount ÷ base.
func (t taxed) tax(lines []TaxLine, inclusive bool, currency string) (amount int64, shares []int64, err error) {
	bases, amounts, same := make([]int64, len(t.lines)), make([]int64, len(t.lines)), true
	var sum int64
	for i, l := range t.lines {
		if bases[i] = int64(MaxRate); inclusive {
			bases[i] += int64(lines[l].rates())
		}
		amounts[i], same = lines[l].Minor, same && bases[i] == bases[0]
		if sum += amounts[i]; amounts[i] < 0 || sum < 0 {
			return 0, nil, ErrOverflow
		}
	}
	if !same {
		return t.mixedTax(amounts, bases, currency)
	}
	total, err := Amount{Minor: sum, Currency: currency}.times(Factor{num: big.NewInt(int64(t.Rate)), den: big.NewInt(bases[0])}, 1)
	if err != nil {
		return 0, nil, err
	}
	shares, err = total.allocate(amounts)
	return total.Minor, shares, err
}

// mixedTax is tax for lines with different bases. With one denominator for all of them, the lines' weights are integers.
func (t taxed) mixedTax(amounts, bases []int64, currency string) (amount int64, shares []int64, err error) {
	den := big.NewInt(1)
	for i, base := range bases {
		if !slices.Contains(bases[:i], base) {
			den.Mul(den, big.NewInt(base))
		}
	}
	weights, exact := make([]big.Int, len(bases)), new(big.Int)
	for i, base := range bases {
		weights[i].Mul(big.NewInt(amounts[i]), weights[i].Quo(den, big.NewInt(base)))
		exact.Add(exact, &weights[i])
	}
	if exact.Sign() == 0 {
		return 0, make([]int64, len(bases)), nil
	}
	rounded := nearest(exact.Mul(exact, big.NewInt(int64(t.Rate))), den, 1)
	if !rounded.IsInt64() {
		return 0, nil, ErrOverflow
	}
	total := Amount{Minor: rounded.Int64(), Currency: currency}
	return total.Minor, total.allocateBig(weights), nil
}

// rates returns the sum of the rates of the line.
func (l TaxLine) rates() (sum Rate) {
	for _, tax := range l.Taxes {
		sum += tax.Rate
	}
	return sum
}
