package domain_test

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/bookings/internal/domain"
)

// TestTariffIsExact checks that a tariff prices each of several packages on each of several days as Quote does, and that both equal
// the price in exact fractions, with up to as many rules as a tenant can have.
func TestTariffIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		services := []domain.ServiceID{ids.New[domain.ServicePrefix](), ids.New[domain.ServicePrefix]()}
		var packages []domain.Package
		for range 3 {
			p := pack(rapid.Int64Range(0, domain.MaxAmount).Draw(t, "base"), domain.DepositPercentage, 3333)
			p.ServiceID = rapid.SampledFrom(services).Draw(t, "service")
			packages = append(packages, p)
		}
		rules := drawRules(t, services, packages)
		tariff := domain.NewTariff(rules)
		for _, day := range []civil.Date{date("2030-01-10"), date("2030-01-15"), date("2030-01-20")} {
			on := tariff.On(day)
			for _, p := range packages {
				want, wantErr := domain.Quote(p, rules, day, 1, domain.TaxDefaults{})
				got, err := tariff.Quote(p, on, tariff.For(p))
				if err == nil {
					got, err = got.Taxed(domain.TaxDefaults{})
				}
				if !errors.Is(err, wantErr) || err == nil && !samePrice(got, want) {
					t.Fatalf("%v: %+v, %v; Quote says %+v, %v", day, got, err, want, wantErr)
				}
				exactly(t, p, domain.Matching(rules, p, day), got, err)
			}
		}
	})
}

func samePrice(a, b domain.Price) bool {
	if (a.Snapshot.Holiday == nil) != (b.Snapshot.Holiday == nil) {
		return false
	}
	return a.Total == b.Total && a.Deposit == b.Deposit && (a.Snapshot.Holiday == nil || *a.Snapshot.Holiday == *b.Snapshot.Holiday)
}

func drawRules(t *rapid.T, services []domain.ServiceID, packages []domain.Package) []domain.HolidayRule {
	factor := rapid.OneOf(
		rapid.Int64Range(9_000, 11_000), rapid.Int64Range(0, 1<<31-1), rapid.SampledFrom([]int64{0, 1, 5_000, 15_000, 20_000, 1<<31 - 1}),
	)
	most := rapid.SampledFrom([]int{3, 20, 200}).Draw(t, "most")
	stack := rapid.IntRange(0, 3).Draw(t, "stack") > 0
	var rules []domain.HolidayRule
	for range rapid.IntRange(0, most).Draw(t, "rules") {
		r := rule("2030-01-01", "2030-01-31", factor.Draw(t, "bps"))
		r.Stackable = stack || rapid.Bool().Draw(t, "stackable")
		r.Active = rapid.IntRange(0, 9).Draw(t, "active") > 0
		r.Priority = rapid.IntRange(0, 2).Draw(t, "priority")
		if rapid.IntRange(0, 3).Draw(t, "part") == 0 {
			r.From, r.To = date("2030-01-12"), date("2030-01-17")
		}
		switch rapid.IntRange(0, 3).Draw(t, "for") {
		case 0:
			r.ServiceIDs = []domain.ServiceID{rapid.SampledFrom(services).Draw(t, "service")}
		case 1:
			r.PackageIDs = []domain.PackageID{rapid.SampledFrom(packages).Draw(t, "package").ID}
		}
		rules = append(rules, r)
	}
	return rules
}

// exactly compares a price with the fraction from which it is rounded.
func exactly(t *rapid.T, p domain.Package, matching []domain.HolidayRule, got domain.Price, err error) {
	factor := big.NewRat(1, 1)
	for i, r := range matching {
		if i == 0 || stacks(matching) {
			factor.Mul(factor, big.NewRat(r.MultiplierBps, money.Whole))
		}
	}
	total := rounded(new(big.Rat).Mul(factor, new(big.Rat).SetInt64(p.BasePrice.Minor)))
	combined := rounded(new(big.Rat).Mul(factor, big.NewRat(money.Whole, 1)))
	tooHigh := !combined.IsInt64() || total.Cmp(big.NewInt(domain.MaxAmount)) > 0
	switch {
	case tooHigh != errors.Is(err, domain.ErrPriceTooHigh):
		t.Fatalf("total %v, factor %v: %v", total, combined, err)
	case tooHigh:
	case err != nil || got.Total.Minor != total.Int64():
		t.Fatalf("total %v, %v; want %v", got.Total, err, total)
	case len(matching) == 0:
		if got.Snapshot.Holiday != nil {
			t.Fatalf("no rule applies, and %+v is shown", got.Snapshot.Holiday)
		}
	case got.Snapshot.Holiday.ID != matching[0].ID || got.Snapshot.Holiday.MultiplierBps != combined.Int64():
		t.Fatalf("%+v, want the factor %v of %v", got.Snapshot.Holiday, combined, matching[0].ID)
	}
}

func stacks(rules []domain.HolidayRule) bool {
	for _, r := range rules {
		if !r.Stackable {
			return false
		}
	}
	return true
}

// rounded returns the nearest integer of a non-negative number. Halves are rounded up.
func rounded(r *big.Rat) *big.Int {
	r = new(big.Rat).Add(r, big.NewRat(1, 2))
	return new(big.Int).Quo(r.Num(), r.Denom())
}
