package money_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"holdfast.dev/libs/money"
)

func rate(t testing.TB, text string) money.Rate {
	t.Helper()
	r, err := money.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// taxes returns taxes named by their rates.
func taxes(t testing.TB, rates ...string) []money.Tax {
	t.Helper()
	out := make([]money.Tax, len(rates))
	for i, text := range rates {
		out[i] = money.Tax{Name: "T" + text, Rate: rate(t, text)}
	}
	return out
}

func TestTaxes(t *testing.T) {
	t.Parallel()
	type line = money.TaxLine
	type row struct{ taxable, amount int64 }
	for name, tc := range map[string]struct {
		currency  string
		inclusive bool
		lines     []line
		rows      []row
		shares    []int64
	}{
		"100 small lines": {
			"EUR", false, slices.Repeat([]line{{33, taxes(t, "19")}}, 100),
			[]row{{3300, 627}},
			append(slices.Repeat([]int64{7}, 27), slices.Repeat([]int64{6}, 73)...),
		},
		"New York": {"USD", false, []line{{1999, taxes(t, "8.875")}}, []row{{1999, 177}}, []int64{177}},
		"Quebec":   {"CAD", false, []line{{10000, taxes(t, "5", "9.975")}}, []row{{10000, 500}, {10000, 998}}, []int64{1498}},
		"Munich":   {"EUR", true, []line{{11900, taxes(t, "19")}}, []row{{10000, 1900}}, []int64{1900}},
		"Quebec, inclusive": {
			"CAD", true, []line{{11498, taxes(t, "5", "9.975")}}, []row{{10000, 500}, {10000, 998}}, []int64{1498},
		},
		"rows in the order of first use": {
			"EUR", false,
			[]line{{1000, taxes(t, "7")}, {1000, nil}, {1000, taxes(t, "19", "7")}, {5, taxes(t, "0")}},
			[]row{{2000, 140}, {1000, 190}, {5, 0}},
			[]int64{70, 0, 260, 0},
		},
		"inclusive lines with different taxes": {
			"EUR", true,
			[]line{{11900, taxes(t, "19")}, {12600, taxes(t, "19", "7")}},
			[]row{{20000, 3800}, {10000, 700}},
			[]int64{1900, 2600},
		},
		"half away from zero":     {"JPY", false, []line{{5, taxes(t, "10")}, {0, taxes(t, "10")}}, []row{{5, 1}}, []int64{1, 0}},
		"the line that lost most": {"JPY", false, []line{{12, taxes(t, "10")}, {19, taxes(t, "10")}}, []row{{31, 3}}, []int64{1, 2}},
		"thousandths": {
			"KWD", false, []line{{1010, taxes(t, "8.25")}, {1010, taxes(t, "8.25")}}, []row{{2020, 167}}, []int64{84, 83},
		},
		"nothing": {"USD", false, nil, nil, []int64{}},
	} {
		got, err := money.Taxes(tc.lines, tc.inclusive, tc.currency)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var rows []row
		for _, r := range got.Rows {
			rows = append(rows, row{r.Taxable, r.Amount})
		}
		if !slices.Equal(rows, tc.rows) || !slices.Equal(got.Lines, tc.shares) {
			t.Errorf("%s: %v, %v", name, got.Rows, got.Lines)
		}
	}
}

var currencies = []string{"JPY", "USD", "EUR", "KWD", "TND"}

// drawDocument draws lines of a document.
func drawDocument(t *rapid.T) (lines []money.TaxLine, inclusive bool, code string) {
	code = rapid.SampledFrom(currencies).Draw(t, "currency")
	pool := []money.Tax{{"GST", 50_000}, {"QST", 99_750}, {"VAT", 190_000}, {"VAT", 70_000}, {"City", 88_750}, {"Zero", 0}, {"All", money.MaxRate}, {"Odd", 1}}
	line := rapid.Custom(func(t *rapid.T) money.TaxLine {
		minor := rapid.OneOf(rapid.Int64Range(0, 500), rapid.Int64Range(0, 99_999_999_999)).Draw(t, "minor")
		return money.TaxLine{
			Minor: minor,
			Taxes: rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 3, rapid.ID[money.Tax]).Draw(t, "taxes"),
		}
	})
	return rapid.SliceOfN(line, 0, 100).Draw(t, "lines"), rapid.Bool().Draw(t, "inclusive"), code
}

// exactTax returns the tax on the lines that have it, as a fraction.
func exactTax(tax money.Tax, lines []money.TaxLine, inclusive bool) *big.Rat {
	sum := new(big.Rat)
	for _, l := range lines {
		base := int64(money.MaxRate)
		for _, one := range l.Taxes {
			if inclusive {
				base += int64(one.Rate)
			}
		}
		if slices.Contains(l.Taxes, tax) {
			part := new(big.Rat).SetFrac64(int64(tax.Rate), base)
			sum.Add(sum, part.Mul(part, new(big.Rat).SetInt64(l.Minor)))
		}
	}
	return sum
}

// Each row is the nearest minor unit to the exact tax, the rows and the shares of the lines have the same sum, and the share of a line is
// its exact tax, up or down by less than a unit for each of its taxes and its part of the rounding.
func TestTaxesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines, inclusive, code := drawDocument(t)
		got, err := money.Taxes(lines, inclusive, code)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rows {
			exact := exactTax(r.Tax, lines, inclusive)
			off := new(big.Rat).Sub(new(big.Rat).SetInt64(r.Amount), exact)
			half := big.NewRat(1, 2)
			if new(big.Rat).Abs(off).Cmp(half) > 0 || off.Cmp(new(big.Rat).Neg(half)) == 0 {
				t.Fatalf("%v is %d, exactly %v", r.Tax, r.Amount, exact)
			}
		}
		var shares int64
		for i, share := range got.Lines {
			shares += share
			if share < 0 || len(lines[i].Taxes) == 0 && share != 0 {
				t.Fatalf("line %v has a tax of %d", lines[i], share)
			}
			exact := new(big.Rat)
			for _, tax := range lines[i].Taxes {
				exact.Add(exact, exactTax(tax, lines[i:i+1], inclusive))
			}
			if off := exact.Sub(exact, new(big.Rat).SetInt64(share)); off.Abs(off).Cmp(big.NewRat(2*int64(len(lines[i].Taxes)), 1)) > 0 {
				t.Fatalf("line %v has a tax of %d, off by %v", lines[i], share, off)
			}
		}
		if shares != got.Total() {
			t.Fatalf("the lines add up to %d, the rows to %d", shares, got.Total())
		}
	})
}

// The taxes of a document depend neither on the order of its lines nor on how lines are split.
func TestTaxesIgnoreOrderAndSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines, inclusive, code := drawDocument(t)
		want, err := money.Taxes(lines, inclusive, code)
		if err != nil {
			t.Fatal(err)
		}
		var split []money.TaxLine
		for _, l := range lines {
			part := rapid.Int64Range(0, l.Minor).Draw(t, "part")
			split = append(split, money.TaxLine{Minor: part, Taxes: l.Taxes}, money.TaxLine{Minor: l.Minor - part, Taxes: l.Taxes})
		}
		for name, other := range map[string][]money.TaxLine{"order": rapid.Permutation(lines).Draw(t, "order"), "split": rapid.Permutation(split).Draw(t, "split")} {
			got, err := money.Taxes(other, inclusive, code)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := byTax(got, inclusive), byTax(want, inclusive); !cmp.Equal(a, b) {
				t.Fatalf("%s: %v, not %v", name, a, b)
			}
		}
	})
}

// byTax returns the rows by tax. Net amounts that are what the shares of other taxes leave are not compared.
func byTax(t money.Taxation, inclusive bool) map[money.Tax][2]int64 {
	out := map[money.Tax][2]int64{}
	for _, r := range t.Rows {
		if inclusive {
			r.Taxable = 0
		}
		out[r.Tax] = [2]int64{r.Taxable, r.Amount}
	}
	return out
}

// Where all lines have the same taxes, net and taxes add up to the amount that includes them.
func TestInclusiveIsNetAndTaxes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines, _, code := drawDocument(t)
		var gross int64
		for i := range lines {
			lines[i].Taxes = lines[0].Taxes
			gross += lines[i].Minor
		}
		got, err := money.Taxes(lines, true, code)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rows {
			if r.Taxable != gross-got.Total() {
				t.Fatalf("%v is on %d of %d with taxes of %d", r.Tax, r.Taxable, gross, got.Total())
			}
		}
	})
}

func TestTaxesRefuse(t *testing.T) {
	t.Parallel()
	vat := taxes(t, "19")
	for name, lines := range map[string][]money.TaxLine{
		"negative": {{10, vat}, {-1, vat}},
		"sum":      {{math.MaxInt64, vat}, {1, vat}},
	} {
		if _, err := money.Taxes(lines, false, "EUR"); !errors.Is(err, money.ErrOverflow) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllocate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		minor   int64
		code    string
		weights []int64
		want    []int64
		err     error
	}{
		{100, "USD", []int64{1, 1, 1}, []int64{34, 33, 33}, nil},
		{-100, "USD", []int64{1, 1, 1}, []int64{-34, -33, -33}, nil},
		{5, "JPY", []int64{1, 0, 3}, []int64{1, 0, 4}, nil},
		{10, "USD", []int64{7, 12, 1}, []int64{4, 6, 0}, nil}, // 3.5, 6, 0.5
		{1000, "KWD", []int64{10, 10, 10}, []int64{334, 333, 333}, nil},
		{1001, "KWD", []int64{10, 10}, []int64{501, 500}, nil},
		{math.MaxInt64, "USD", []int64{math.MaxInt64, math.MaxInt64}, []int64{math.MaxInt64/2 + 1, math.MaxInt64 / 2}, nil},
		{0, "USD", []int64{0, 0}, []int64{0, 0}, nil},
		{0, "USD", nil, nil, nil},
		{1, "USD", []int64{0, 0}, nil, money.ErrWeights},
		{1, "USD", nil, nil, money.ErrWeights},
		{1, "USD", []int64{2, -1}, nil, money.ErrWeights},
		{1, "USD", []int64{math.MaxInt64, math.MaxInt64, 2}, nil, money.ErrOverflow},
	} {
		got, err := money.Amount{Minor: tc.minor, Currency: tc.code}.Allocate(tc.weights)
		var minors []int64
		for _, a := range got {
			minors = append(minors, a.Minor)
			if a.Currency != tc.code {
				t.Errorf("%v", a)
			}
		}
		if !errors.Is(err, tc.err) || !slices.Equal(minors, tc.want) {
			t.Errorf("%d %s by %v: %v, %v", tc.minor, tc.code, tc.weights, minors, err)
		}
	}
}

// Parts add up to the amount, are within a minor unit of the exact proportion, and never exceed weights that the amount does not exceed.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom(currencies).Draw(t, "currency")
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Range(0, 9_999_999_999)), 1, 100).Draw(t, "weights")
		var sum int64
		for _, w := range weights {
			sum += w
		}
		total := rapid.Int64Range(0, sum).Draw(t, "total")
		parts, err := money.Amount{Minor: total, Currency: code}.Allocate(weights)
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		for i, p := range parts {
			got += p.Minor
			off := new(big.Int).Mul(big.NewInt(p.Minor), big.NewInt(sum))
			off.Sub(off, new(big.Int).Mul(big.NewInt(total), big.NewInt(weights[i])))
			if p.Minor < 0 || p.Minor > weights[i] || sum > 0 && off.CmpAbs(big.NewInt(sum)) >= 0 {
				t.Fatalf("part %d of %d by %d of %d is %d", i, total, weights[i], sum, p.Minor)
			}
		}
		if got != total {
			t.Fatalf("%d became %d", total, got)
		}
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		rate  money.Rate
		text  string
		bps   int64
		exact bool
	}{
		"0": {0, "0", 0, true}, "19": {190_000, "19", 1900, true}, "19.00": {190_000, "19", 1900, true}, "8.875": {88_750, "8.875", 887, false},
		"9.975": {99_750, "9.975", 997, false}, "0.0001": {1, "0.0001", 0, false}, "100": {money.MaxRate, "100", 10_000, true},
		"100.0000": {money.MaxRate, "100", 10_000, true}, "10": {100_000, "10", 1000, true}, "0.25": {2500, "0.25", 25, true},
	} {
		got, err := money.ParseRate(text)
		if err != nil || got != want.rate || got.String() != want.text {
			t.Errorf("%s: %d %s, %v", text, got, got, err)
		}
		if bps, exact := got.Bps(); bps != want.bps || exact != want.exact {
			t.Errorf("%s: %d basis points, %v", text, bps, exact)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1e1", "1.", ".5", "100.0001", "101", "1000", "1.00001", "1,5", " 1", "5%", "٣", "999999999999999999999"} {
		if got, err := money.ParseRate(text); !errors.Is(err, money.ErrFormat) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got := money.RateOfBps(887); got != 88_700 {
		t.Errorf("887 basis points: %d", got)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"0", "8.875", "100.0000", "100.0001", "019"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := money.ParseRate(text)
		if err != nil {
			return
		}
		again, err := money.ParseRate(r.String())
		if percent, _ := strconv.ParseFloat(text, 64); err != nil || again != r || math.Abs(percent*10_000-float64(r)) > 0.01 {
			t.Fatalf("%q: %d, then %d, %v", text, r, again, err)
		}
	})
}

// BenchmarkTaxes computes the largest document: 100 lines with three taxes each.
func BenchmarkTaxes(b *testing.B) {
	for name, inclusive := range map[string]bool{"exclusive": false, "inclusive": true} {
		lines := slices.Repeat([]money.TaxLine{{123_45, taxes(b, "5", "9.975", "8.875")}}, 100)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := money.Taxes(lines, inclusive, "CAD"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
