// Package money calculates with amounts in the minor units of an ISO 4217 currency. It uses no floats. Products are exact and
// rounded once, half away from zero, to a multiple of the currency's Step.
package money

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Whole is the number of basis points in 1. For example, 11500 is a factor of 1.15.
const Whole = 10_000

// Errors of arithmetic and parsing.
var (
	ErrOverflow = errors.New("amount out of range")
	ErrCurrency = errors.New("currencies differ or are unknown")
	ErrFormat   = errors.New("malformed amount")
)

// Amount is a number of Minor units of Currency, an upper-case ISO 4217 code. The zero value has no currency.
type Amount struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Decimals returns the number of decimal places of the currency in ISO 4217: 0 for JPY, 2 for USD, 3 for KWD.
func Decimals(code string) (int, error) {
	d, ok := currency.GetDigits(code)
	if !ok {
		return 0, ErrCurrency
	}
	return int(d), nil
}

// Step returns the smallest difference between prices of the currency, in minor units. It is 10 if ISO 4217 defines three decimals,
// because card payments have no thousandths, and 1 otherwise. Amounts that a person enters, and lines and taxes of documents, may be
// finer.
func Step(code string) int64 {
	if d, _ := Decimals(code); d == 3 {
		return 10
	}
	return 1
}

// CardUnit returns the unit of card payments and their refunds, in minor units: the payment gateway accepts multiples of it only. It is the
// Step, except for MGA, which the gateway counts in whole units.
func CardUnit(code string) int64 {
	if code == "MGA" {
		return 100
	}
	return Step(code)
}

// IsZero reports whether the amount is zero, in any currency.
func (a Amount) IsZero() bool { return a.Minor == 0 }

// Add returns a + b, or ErrCurrency if the currencies differ, or ErrOverflow.
func (a Amount) Add(b Amount) (Amount, error) {
	if a.Currency != b.Currency {
		return Amount{}, ErrCurrency
	}
	sum := a.Minor + b.Minor
	if (sum > a.Minor) != (b.Minor > 0) && b.Minor != 0 {
		return Amount{}, ErrOverflow
	}
	return Amount{Minor: sum, Currency: a.Currency}, nil
}

// Sub returns a − b, or ErrCurrency if the currencies differ, or ErrOverflow.
func (a Amount) Sub(b Amount) (Amount, error) {
	if a.Currency != b.Currency {
		return Amount{}, ErrCurrency
	}
	diff := a.Minor - b.Minor
	if (diff < a.Minor) != (b.Minor > 0) && b.Minor != 0 {
		return Amount{}, ErrOverflow
	}
	return Amount{Minor: diff, Currency: a.Currency}, nil
}

// MulBps multiplies by every factor, each in basis points, and rounds once at the end, like Times.
func (a Amount) MulBps(factors ...int64) (Amount, error) { return a.Times(Product(factors...)) }

// Factor is the exact product of factors in basis points. The zero value is not usable. Use Product to create a Factor.
type Factor struct{ num, den *big.Int }

// Product multiplies factors in basis points, none of them negative. It takes one step for each machine word of the product.
// Compute a Product once for many amounts.
func Product(bps ...int64) Factor {
	f := Factor{num: big.NewInt(1), den: new(big.Int).Exp(big.NewInt(Whole), big.NewInt(int64(len(bps))), nil)}
	word, next := uint64(1), new(big.Int)
	take := func() { f.num.Mul(f.num, next.SetUint64(word)) }
	for _, b := range bps {
		over, product := bits.Mul64(word, uint64(b))
		if over != 0 {
			take()
			product = uint64(b)
		}
		word = product
	}
	take()
	return f
}

// And returns the product of both.
func (f Factor) And(g Factor) Factor {
	return Factor{num: new(big.Int).Mul(f.num, g.num), den: new(big.Int).Mul(f.den, g.den)}
}

// Rounded returns the nearest multiple of the currency's Step.
func (a Amount) Rounded() (Amount, error) { return a.MulBps() }

// Times multiplies by the factor and rounds once to a multiple of the currency's Step, half away from zero.
func (a Amount) Times(f Factor) (Amount, error) { return a.times(f, Step(a.Currency)) }

// Share multiplies by a factor in basis points, and rounds once to a minor unit, half away from zero. Lines of documents are computed so.
func (a Amount) Share(bps int64) (Amount, error) { return a.times(Product(bps), 1) }

// times multiplies by the factor and rounds once to a multiple of step, half away from zero.
func (a Amount) times(f Factor, step int64) (Amount, error) {
	product := new(big.Int).Mul(big.NewInt(a.Minor), f.num)
	product = nearest(product, f.den, step)
	if !product.IsInt64() {
		return Amount{}, ErrOverflow
	}
	return Amount{Minor: product.Int64(), Currency: a.Currency}, nil
}

// nearest returns the multiple of step that is nearest to num ÷ den, half away from zero. It overwrites num.
func nearest(num, den *big.Int, step int64) *big.Int {
	by, rest := big.NewInt(step), new(big.Int)
	den = new(big.Int).Mul(den, by)
	num.QuoRem(num, den, rest)
	if rest.Lsh(rest, 1).CmpAbs(den) >= 0 {
		num.Add(num, big.NewInt(int64(rest.Sign())))
	}
	return num.Mul(num, by)
}

// Parse parses a plain decimal, such as "12.34" or "-5", as an amount of the currency. It returns ErrFormat if text has more
// decimals than the currency in ISO 4217. It never rounds.
func Parse(text, code string) (Amount, error) {
	decimals, err := Decimals(code)
	if err != nil {
		return Amount{}, err
	}
	whole, fraction, dotted := strings.Cut(text, ".")
	digits := strings.TrimPrefix(whole, "-")
	if !isDigits(digits) || dotted && !isDigits(fraction) || len(fraction) > decimals {
		return Amount{}, fmt.Errorf("%w: %q", ErrFormat, text)
	}
	minor, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		return Amount{}, fmt.Errorf("%w: %q", ErrOverflow, text)
	}
	return Amount{Minor: minor, Currency: code}, nil
}

func isDigits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// String returns the amount as "12.34 USD", for logs and texts.
func (a Amount) String() string {
	decimals, err := Decimals(a.Currency)
	if err != nil {
		return fmt.Sprintf("%d %s", a.Minor, a.Currency)
	}
	return a.Decimal(decimals) + " " + a.Currency
}

// Decimal returns only the number, with the given number of decimals, in the form that Parse reads.
func (a Amount) Decimal(decimals int) string {
	digits := strconv.FormatInt(a.Minor, 10)
	sign := ""
	if a.Minor < 0 {
		sign, digits = "-", digits[1:]
	}
	if decimals == 0 {
		return sign + digits
	}
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals-len(digits)+1) + digits
	}
	cut := len(digits) - decimals
	return sign + digits[:cut] + "." + digits[cut:]
}

// CurrencyColumn is a text column with the currency that several amounts of a row have.
type CurrencyColumn []*Amount

// CurrencyOf returns the column for the currency of amounts. The first one determines what is written.
func CurrencyOf(amounts ...*Amount) *CurrencyColumn { return (*CurrencyColumn)(&amounts) }

// Value implements driver.Valuer.
func (c *CurrencyColumn) Value() (driver.Value, error) { return (*c)[0].Currency, nil }

// Scan implements sql.Scanner.
func (c *CurrencyColumn) Scan(src any) error {
	code, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan currency from %T", src)
	}
	for _, a := range *c {
		a.Currency = code
	}
	return nil
}
