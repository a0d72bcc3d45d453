package domain_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/bookings/internal/domain"
)

func usd(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }

func pack(base int64, kind domain.DepositType, value int64) domain.Package {
	return domain.Package{
		ID: ids.New[domain.PackagePrefix](), ServiceID: ids.New[domain.ServicePrefix](),
		Terms: domain.Terms{Name: "P", BasePrice: usd(base), DepositType: kind, DepositValue: value},
	}
}

func date(s string) civil.Date {
	d, err := civil.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := civil.Location(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func rule(from, to string, bps int64, change ...func(*domain.HolidayRule)) domain.HolidayRule {
	r := domain.HolidayRule{
		ID: ids.New[domain.HolidayPrefix](), Name: from, From: date(from), To: date(to), Recurrence: domain.Once, MultiplierBps: bps, Active: true,
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func yearly(r *domain.HolidayRule)    { r.Recurrence = domain.Yearly }
func stackable(r *domain.HolidayRule) { r.Stackable = true }
func inactive(r *domain.HolidayRule)  { r.Active = false }
func priority(n int) func(*domain.HolidayRule) {
	return func(r *domain.HolidayRule) { r.Priority = n }
}

func TestPriceVectors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		base, bps      int64
		kind           domain.DepositType
		value          int64
		total, deposit int64
	}{
		{19999, 11500, domain.DepositNone, 0, 22999, 0},
		{250, 10100, domain.DepositNone, 0, 253, 0},
		{1001, 10000, domain.DepositPercentage, 5000, 1001, 501},
		{12345, 10000, domain.DepositPercentage, 3333, 12345, 4115},
		{5, 11250, domain.DepositPercentage, 2500, 6, 2},
		{1000, 10000, domain.DepositFlat, 400, 1000, 400},
		{1000, 5000, domain.DepositFlat, 600, 500, 500},
		{1000, 10000, domain.DepositPercentage, 10001, 1000, 1000},
		{1000, 0, domain.DepositFlat, 600, 0, 0},
		{0, 11500, domain.DepositPercentage, 5000, 0, 0},
		{domain.MaxAmount, 10000, domain.DepositPercentage, 1 << 62, domain.MaxAmount, domain.MaxAmount},
	} {
		got, err := domain.Quote(pack(tc.base, tc.kind, tc.value), []domain.HolidayRule{rule("2030-01-01", "2030-01-31", tc.bps)}, date("2030-01-15"), 1, domain.TaxDefaults{})
		if err != nil || got.Total != usd(tc.total) || got.Deposit != usd(tc.deposit) {
			t.Errorf("%+v: total %v, deposit %v, %v", tc, got.Total, got.Deposit, err)
		}
	}
	if _, err := domain.Quote(pack(domain.MaxAmount, domain.DepositNone, 0), []domain.HolidayRule{rule("2030-01-01", "2030-01-31", 10001)}, date("2030-01-15"), 1, domain.TaxDefaults{}); !errors.Is(err, domain.ErrPriceTooHigh) {
		t.Errorf("one above the bound: %v", err)
	}
	for _, huge := range [][]domain.HolidayRule{
		{rule("2030-01-01", "2030-01-31", 1<<62)},
		{rule("2030-01-01", "2030-01-31", 1<<62, stackable), rule("2030-01-01", "2030-01-31", 1<<62, stackable)},
	} {
		if _, err := domain.Quote(pack(1000, domain.DepositNone, 0), huge, date("2030-01-15"), 1, domain.TaxDefaults{}); !errors.Is(err, domain.ErrPriceTooHigh) {
			t.Errorf("overflow: %v", err)
		}
	}
}

func TestRuleThatDecides(t *testing.T) {
	t.Parallel()
	p := pack(10000, domain.DepositNone, 0)
	byPackage := func(r *domain.HolidayRule) { r.PackageIDs = []domain.PackageID{p.ID} }
	byService := func(r *domain.HolidayRule) { r.ServiceIDs = []domain.ServiceID{p.ServiceID} }
	others := func(r *domain.HolidayRule) { r.PackageIDs = []domain.PackageID{ids.New[domain.PackagePrefix]()} }
	low := rule("2030-01-01", "2030-01-31", 10600)
	high := rule("2030-01-01", "2030-01-31", 10700)
	for name, tc := range map[string]struct {
		rules []domain.HolidayRule
		want  int64
	}{
		"none":                      {nil, 10000},
		"other day":                 {[]domain.HolidayRule{rule("2030-01-16", "2030-01-31", 12000)}, 10000},
		"first and last day count":  {[]domain.HolidayRule{rule("2030-01-15", "2030-01-15", 12000)}, 12000},
		"inactive":                  {[]domain.HolidayRule{rule("2030-01-01", "2030-01-31", 12000, inactive)}, 10000},
		"of another package":        {[]domain.HolidayRule{rule("2030-01-01", "2030-01-31", 12000, others)}, 10000},
		"priority first":            {[]domain.HolidayRule{rule("2030-01-15", "2030-01-15", 12000, byPackage), rule("2030-01-01", "2030-12-31", 10100, priority(1))}, 10100},
		"package before service":    {[]domain.HolidayRule{rule("2030-01-15", "2030-01-15", 12000, byService), rule("2030-01-01", "2030-12-31", 10100, byPackage)}, 10100},
		"service before all":        {[]domain.HolidayRule{rule("2030-01-15", "2030-01-15", 12000), rule("2030-01-01", "2030-12-31", 10100, byService)}, 10100},
		"shortest range":            {[]domain.HolidayRule{rule("2030-01-01", "2030-01-31", 12000), rule("2030-01-10", "2030-01-31", 10100)}, 10100},
		"lowest id":                 {[]domain.HolidayRule{high, low}, 10600},
		"stacked":                   {[]domain.HolidayRule{rule("2030-01-01", "2030-01-31", 11000, stackable), rule("2030-01-01", "2030-01-31", 11000, stackable)}, 12100},
		"one that does not stack":   {[]domain.HolidayRule{rule("2030-01-01", "2030-01-31", 11000, stackable, priority(1)), rule("2030-01-01", "2030-01-31", 13000)}, 11000},
		"yearly in another year":    {[]domain.HolidayRule{rule("2020-01-10", "2020-01-20", 12000, yearly)}, 12000},
		"yearly counts once a year": {[]domain.HolidayRule{rule("2020-01-16", "2020-01-20", 12000, yearly)}, 10000},
	} {
		got, err := domain.Quote(p, tc.rules, date("2030-01-15"), 1, domain.TaxDefaults{})
		if err != nil || got.Total.Minor != tc.want {
			t.Errorf("%s: %v, %v; want %d", name, got.Total, err, tc.want)
		}
	}
	got, err := domain.Quote(p, []domain.HolidayRule{rule("2030-01-15", "2030-01-15", 11000, stackable), rule("2030-01-01", "2030-01-31", 11000, stackable, priority(2))}, date("2030-01-15"), 1, domain.TaxDefaults{})
	if h := got.Snapshot.Holiday; err != nil || h == nil || h.Name != "2030-01-01" || h.MultiplierBps != 12100 {
		t.Errorf("stacked rules show the first by priority with the combined factor, got %+v", h)
	}
}

func TestYearlyRanges(t *testing.T) {
	t.Parallel()
	newYear := rule("2020-12-30", "2021-01-02", 11000, yearly)
	leap := rule("2024-02-29", "2024-02-29", 11000, yearly)
	endsOnLeap := rule("2024-02-27", "2024-02-29", 11000, yearly)
	always := rule("2024-03-01", "2025-03-01", 11000, yearly)
	for _, tc := range []struct {
		rule domain.HolidayRule
		day  string
		want bool
	}{
		{newYear, "2030-12-29", false},
		{newYear, "2030-12-30", true},
		{newYear, "2030-12-31", true},
		{newYear, "2031-01-01", true},
		{newYear, "2031-01-02", true},
		{newYear, "2031-01-03", false},
		{newYear, "2030-07-01", false},
		{newYear, "1999-01-01", true},
		{leap, "2028-02-29", true},
		{leap, "2027-02-28", false},
		{leap, "2027-03-01", false},
		{leap, "2028-02-28", false},
		{endsOnLeap, "2027-02-28", true},
		{endsOnLeap, "2027-03-01", false},
		{endsOnLeap, "2028-02-29", true},
		{endsOnLeap, "2027-02-26", false},
		{always, "2027-02-28", true},
		{always, "2028-02-29", true},
		{always, "2028-10-10", true},
	} {
		if got := tc.rule.Covers(date(tc.day)); got != tc.want {
			t.Errorf("%s–%s on %s: %v", tc.rule.From, tc.rule.To, tc.day, got)
		}
	}
}

// TestPricesInThousandths checks that prices and deposits in three-decimal currencies can be paid by card, regardless of what the
// operator entered.
func TestPricesInThousandths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := pack(rapid.Int64Range(0, 1_000_000).Draw(t, "base"),
			rapid.SampledFrom([]domain.DepositType{domain.DepositNone, domain.DepositFlat, domain.DepositPercentage}).Draw(t, "type"),
			rapid.Int64Range(0, 10_000).Draw(t, "value"))
		p.BasePrice.Currency = rapid.SampledFrom([]string{"BHD", "JOD", "KWD", "OMR", "TND"}).Draw(t, "currency")
		var rules []domain.HolidayRule
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			rules = append(rules, rule("2030-01-01", "2030-12-31", rapid.Int64Range(1, 20_000).Draw(t, "bps"), stackable))
		}
		got, err := domain.Quote(p, rules, date("2030-06-01"), 1, drawTaxes(t))
		if err != nil || got.Total.Minor%10 != 0 || got.Gross.Minor%10 != 0 || got.Deposit.Minor%10 != 0 || got.Deposit.Minor > got.Gross.Minor {
			t.Fatalf("total %v, gross %v, deposit %v, %v", got.Total, got.Gross, got.Deposit, err)
		}
	})
}

// drawTaxes draws up to three taxes of a tenant.
func drawTaxes(t *rapid.T) domain.TaxDefaults {
	out := domain.TaxDefaults{Behavior: rapid.SampledFrom([]money.TaxBehavior{money.TaxExclusive, money.TaxInclusive}).Draw(t, "behavior")}
	for i := range rapid.IntRange(0, 3).Draw(t, "taxes") {
		out.Taxes = append(out.Taxes, money.Tax{Name: string(rune('A' + i)), Rate: money.Rate(rapid.Int64Range(0, int64(money.MaxRate)).Draw(t, "rate"))})
	}
	return out
}

// TestGrossProperties checks that the taxes of a price are rounded once each, to a minor unit, that the gross amount can be paid by card,
// and that the deposit is a share of it.
func TestGrossProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Int64Range(0, money.Whole).Draw(t, "share")
		p := pack(rapid.Int64Range(0, 1_000_000_000).Draw(t, "base"), domain.DepositPercentage, share)
		p.BasePrice.Currency = rapid.SampledFrom([]string{"JPY", "USD", "KWD"}).Draw(t, "currency")
		by := drawTaxes(t)
		got, err := domain.Quote(p, nil, date("2030-06-01"), 1, by)
		if err != nil {
			t.Fatal(err)
		}
		rates, tax := int64(0), int64(0)
		for _, one := range by.Taxes {
			rates += int64(one.Rate)
		}
		base := int64(money.MaxRate)
		if by.Behavior == money.TaxInclusive {
			base += rates
		}
		for i, row := range got.Taxes.Rows {
			off := new(big.Int).Mul(big.NewInt(row.Amount), big.NewInt(base))
			off.Sub(off, new(big.Int).Mul(big.NewInt(got.Total.Minor), big.NewInt(int64(by.Taxes[i].Rate)))).Lsh(off, 1)
			if off.CmpAbs(big.NewInt(base)) > 0 {
				t.Fatalf("row %+v of %v", row, got.Total)
			}
			tax += row.Amount
		}
		net, gross := got.Total.Minor, got.Total.Minor+tax
		if by.Behavior == money.TaxInclusive {
			net, gross = got.Total.Minor-tax, got.Total.Minor
		}
		want, err := money.Amount{Minor: gross, Currency: p.BasePrice.Currency}.Rounded()
		if err != nil || got.Gross != want || got.Taxes.Behavior != by.Behavior || len(got.Taxes.Rows) != len(by.Taxes) {
			t.Fatalf("gross %v of %v with %+v", got.Gross, got.Total, got.Taxes)
		}
		for _, row := range got.Taxes.Rows {
			if row.Taxable != net {
				t.Fatalf("taxable %d of net %d", row.Taxable, net)
			}
		}
		if want, err := got.Gross.MulBps(share); err != nil || got.Deposit != want {
			t.Fatalf("deposit %v of %v, want %v", got.Deposit, got.Gross, want)
		}
	})
}

// TestServiceTaxesPrecede checks that the taxes of a service, even none, precede those of the operator.
func TestServiceTaxesPrecede(t *testing.T) {
	t.Parallel()
	vat, none := []money.Tax{{Name: "VAT", Rate: 190_000}}, []money.Tax{}
	by := domain.TaxDefaults{Behavior: money.TaxInclusive, Taxes: vat}
	for _, tc := range []struct {
		service *domain.Service
		want    []money.Tax
	}{{nil, vat}, {&domain.Service{}, vat}, {&domain.Service{DefaultTaxes: &none}, none}} {
		if got := by.Of(tc.service); got.Behavior != money.TaxInclusive || len(got.Taxes) != len(tc.want) {
			t.Errorf("%+v", got)
		}
	}
	high := pack(domain.MaxAmount, domain.DepositNone, 0)
	if _, err := domain.Quote(high, nil, date("2030-01-15"), 1, domain.TaxDefaults{Behavior: money.TaxExclusive, Taxes: vat}); !errors.Is(err, domain.ErrPriceTooHigh) {
		t.Errorf("gross above the bound: %v", err)
	}
	if got, err := domain.Quote(high, nil, date("2030-01-15"), 1, by); err != nil || got.Gross != high.BasePrice {
		t.Errorf("taxes in the price: %v, %v", got.Gross, err)
	}
}

func TestPriceProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := pack(rapid.Int64Range(0, 1_000_000_000).Draw(t, "base"),
			rapid.SampledFrom([]domain.DepositType{domain.DepositNone, domain.DepositFlat, domain.DepositPercentage}).Draw(t, "type"),
			rapid.Int64Range(0, 20_000).Draw(t, "value"))
		var rules []domain.HolidayRule
		exact, den := big.NewInt(p.BasePrice.Minor), big.NewInt(1)
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			bps := rapid.Int64Range(1, 20_000).Draw(t, "bps")
			rules = append(rules, rule("2030-01-01", "2030-12-31", bps, stackable))
			exact.Mul(exact, big.NewInt(bps))
			den.Mul(den, big.NewInt(money.Whole))
		}
		got, err := domain.Quote(p, rules, date("2030-06-01"), 1, domain.TaxDefaults{})
		if err != nil {
			t.Fatal(err)
		}
		// Rounded once: within half of one unit of the exact product.
		off := new(big.Int).Mul(big.NewInt(got.Total.Minor), den)
		off.Sub(off, exact).Lsh(off, 1)
		if off.CmpAbs(den) > 0 {
			t.Fatalf("total %v is not the nearest to %v/%v", got.Total, exact, den)
		}
		rest, err := got.Total.Sub(got.Deposit)
		if err != nil || got.Deposit.Minor < 0 || rest.Minor < 0 {
			t.Fatalf("deposit %v of %v", got.Deposit, got.Total)
		}
		if sum, err := got.Deposit.Add(rest); err != nil || sum != got.Total {
			t.Fatalf("deposit %v and balance %v are not %v", got.Deposit, rest, got.Total)
		}
		// The order in which rules are stored does not matter.
		for i, j := 0, len(rules)-1; i < j; i, j = i+1, j-1 {
			rules[i], rules[j] = rules[j], rules[i]
		}
		if again, err := domain.Quote(p, rules, date("2030-06-01"), 1, domain.TaxDefaults{}); err != nil || again.Total != got.Total || again.Deposit != got.Deposit {
			t.Fatalf("%v became %v", got, again)
		}
	})
}

func TestPaymentStatus(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		total, gross, deposit, paid, refunded int64
		want                                  domain.PaymentStatus
		due                                   int64
	}{
		{1000, 1000, 300, 0, 0, domain.Unpaid, 1000},
		{0, 0, 0, 0, 0, domain.Unpaid, 0},
		{1000, 1000, 300, 299, 0, domain.PartiallyPaid, 701},
		{1000, 1000, 300, 300, 0, domain.DepositPaid, 700},
		{1000, 1000, 0, 300, 0, domain.PartiallyPaid, 700},
		{1000, 1000, 300, 1000, 0, domain.Paid, 0},
		{1000, 1000, 300, 1001, 0, domain.Overpaid, 0},
		{0, 0, 0, 500, 0, domain.Paid, 0},
		{1000, 1000, 300, 1000, 1, domain.PartiallyRefunded, 0},
		{1000, 1000, 300, 1000, 1000, domain.Refunded, 0},
		{1000, 1190, 0, 0, 0, domain.Unpaid, 1190},
		{1000, 1190, 0, 1000, 0, domain.PartiallyPaid, 190},
		{1000, 1190, 0, 1190, 0, domain.Paid, 0},
		{1000, 1190, 0, 1191, 0, domain.Overpaid, 0},
	} {
		a := domain.Amounts{Total: usd(tc.total), Gross: usd(tc.gross), Deposit: usd(tc.deposit), Paid: usd(tc.paid), Refunded: usd(tc.refunded)}
		if a.Status() != tc.want || a.Due() != usd(tc.due) {
			t.Errorf("%+v: %s, due %v", tc, a.Status(), a.Due())
		}
	}
}
