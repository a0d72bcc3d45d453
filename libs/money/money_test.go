package money_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/money"
)

func usd(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }

func TestMulBpsRoundsOnceHalfAwayFromZero(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		minor   int64
		factors []int64
		want    int64
	}{
		{19999, []int64{11500}, 22999},
		{250, []int64{10100}, 253}, // 252.5
		{-250, []int64{10100}, -253},
		{1001, []int64{5000}, 501},
		{12345, []int64{3333}, 4115},
		{5, []int64{11250}, 6},
		{6, []int64{2500}, 2},
		{1, []int64{15000, 15000}, 2}, // 2.25, not round(round(1.5)×1.5) = 3
		{7, nil, 7},
		{7, []int64{0}, 0},
	} {
		got, err := usd(tc.minor).MulBps(tc.factors...)
		if err != nil || got != usd(tc.want) {
			t.Errorf("%d × %v = %v, %v; want %d", tc.minor, tc.factors, got, err, tc.want)
		}
	}
	if _, err := usd(math.MaxInt64).MulBps(10001); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("overflow: %v", err)
	}
}

func TestMulBpsIsTheNearest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minor := rapid.Int64Range(-99_999_999_999, 99_999_999_999).Draw(t, "minor")
		bps := rapid.Int64Range(0, 1_000_000).Draw(t, "bps")
		got, err := usd(minor).MulBps(bps)
		if err != nil {
			t.Fatal(err)
		}
		exact := new(big.Int).Mul(big.NewInt(minor), big.NewInt(bps))
		rest := new(big.Int).Sub(new(big.Int).Mul(big.NewInt(got.Minor), big.NewInt(money.Whole)), exact)
		if rest.CmpAbs(big.NewInt(money.Whole/2)) > 0 {
			t.Fatalf("%d × %d = %d, off by %v", minor, bps, got.Minor, rest)
		}
	})
}

// Amounts in thousandths are rounded once to ten, so that a card can pay them.
func TestStep(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ minor, bps, want int64 }{
		{5120, 11500, 5890}, {46, 1000, 0}, {5, 10000, 10}, {-5, 10000, -10}, {4, 10000, 0}, {12345, 10000, 12350}, {12350, 3333, 4120},
	} {
		for _, code := range []string{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"} {
			got, err := (money.Amount{Minor: tc.minor, Currency: code}).MulBps(tc.bps)
			if err != nil || got.Minor != tc.want {
				t.Errorf("%d × %d = %v, %v; want %d", tc.minor, tc.bps, got, err, tc.want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"KWD", "TND", "USD", "JPY"}).Draw(t, "currency")
		a := money.Amount{Minor: rapid.Int64Range(-99_999_999_999, 99_999_999_999).Draw(t, "minor"), Currency: code}
		got, err := a.Rounded()
		off := got.Minor - a.Minor
		if err != nil || got.Currency != code || got.Minor%money.Step(code) != 0 || max(off, -off) > money.Step(code)/2 {
			t.Fatalf("%v is rounded to %v, %v", a, got, err)
		}
	})
	if _, err := (money.Amount{Minor: math.MaxInt64, Currency: "KWD"}).Rounded(); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("overflow: %v", err)
	}
}

// A product is exact, for any number of factors in any combination, and is rounded once.
func TestProductsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minor := rapid.Int64Range(-99_999_999_999, 99_999_999_999).Draw(t, "minor")
		factors := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 1<<31-1), rapid.Int64Range(9_000, 11_000), rapid.Just(int64(15_000))), 0, 200).Draw(t, "factors")
		cut := rapid.IntRange(0, len(factors)).Draw(t, "cut")
		exact := new(big.Rat).SetInt64(minor)
		for _, f := range factors {
			exact.Mul(exact, big.NewRat(f, money.Whole))
		}
		away := big.NewRat(int64(exact.Sign()), 2)
		want := new(big.Int).Quo(away.Add(away, exact).Num(), away.Denom())
		for _, f := range []money.Factor{money.Product(factors...), money.Product(factors[:cut]...).And(money.Product(factors[cut:]...))} {
			got, err := usd(minor).Times(f)
			if errors.Is(err, money.ErrOverflow) == want.IsInt64() || err == nil && got != usd(want.Int64()) {
				t.Fatalf("%d × %v = %v, %v; want %v", minor, factors, got, err, want)
			}
		}
	})
}

func TestAddAndSubAreChecked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		for name, pair := range map[string]struct {
			got   func() (money.Amount, error)
			exact *big.Int
		}{
			"add": {func() (money.Amount, error) { return usd(a).Add(usd(b)) }, new(big.Int).Add(big.NewInt(a), big.NewInt(b))},
			"sub": {func() (money.Amount, error) { return usd(a).Sub(usd(b)) }, new(big.Int).Sub(big.NewInt(a), big.NewInt(b))},
		} {
			got, err := pair.got()
			if fits := pair.exact.IsInt64(); fits != (err == nil) || fits && got.Minor != pair.exact.Int64() {
				t.Fatalf("%s(%d, %d) = %v, %v; want %v", name, a, b, got, err, pair.exact)
			}
		}
	})
	if _, err := usd(1).Add(money.Amount{Minor: 1, Currency: "EUR"}); !errors.Is(err, money.ErrCurrency) {
		t.Errorf("mixed currencies: %v", err)
	}
}

func TestParseKnowsEachCurrencysDecimals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, code string
		want       int64
		err        error
	}{
		{"12.34", "USD", 1234, nil},
		{"12.3", "USD", 1230, nil},
		{"-0.05", "USD", -5, nil},
		{"12", "JPY", 12, nil},
		{"1.234", "KWD", 1234, nil},
		{"12.345", "USD", 0, money.ErrFormat},
		{"12.0", "JPY", 0, money.ErrFormat},
		{"1e2", "USD", 0, money.ErrFormat},
		{"", "USD", 0, money.ErrFormat},
		{"1.", "USD", 0, money.ErrFormat},
		{"+1", "USD", 0, money.ErrFormat},
		{"99999999999999999999", "USD", 0, money.ErrOverflow},
		{"1", "XXQ", 0, money.ErrCurrency},
		{"1", "usd", 0, money.ErrCurrency},
	} {
		got, err := money.Parse(tc.text, tc.code)
		if !errors.Is(err, tc.err) || err == nil && got.Minor != tc.want {
			t.Errorf("Parse(%q, %s) = %v, %v; want %d, %v", tc.text, tc.code, got, err, tc.want, tc.err)
		}
	}
	if got := (money.Amount{Minor: -5, Currency: "KWD"}).String(); got != "-0.005 KWD" {
		t.Errorf("String: %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "12.34", "-0.05", "1.234", "1e9", "٣", "9223372036854775807", "-92233720368547758.08"} {
		f.Add(s, "USD")
		f.Add(s, "JPY")
		f.Add(s, "KWD")
	}
	f.Fuzz(func(t *testing.T, text, code string) {
		a, err := money.Parse(text, code)
		if err != nil {
			return
		}
		decimals, err := money.Decimals(code)
		if err != nil {
			t.Fatal(err)
		}
		again, err := money.Parse(a.Decimal(decimals), code)
		if err != nil || again != a {
			t.Fatalf("%q %s: %v became %v, %v", text, code, a, again, err)
		}
	})
}
