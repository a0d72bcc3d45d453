package domain_test

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// TestTotalsCanBePaidByCard checks that, for any lines, a card can pay their total, and that the amounts add up.
func TestTotalsCanBePaidByCard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"KWD", "BHD", "JOD", "OMR", "TND", "USD", "JPY"}).Draw(t, "currency")
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) domain.Line {
			return domain.Line{
				Description: "L", Quantity: rapid.Int64Range(1, 50).Draw(t, "quantity"), UnitAmount: rapid.Int64Range(0, 99_999).Draw(t, "unit"),
				DiscountBps: rapid.Int64Range(0, 10_000).Draw(t, "discount"), TaxRateBps: rapid.Int64Range(0, 10_000).Draw(t, "tax"),
			}
		}), 1, 20).Draw(t, "lines")
		got, err := domain.Sum(lines, code)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, l := range lines {
			a, err := l.Amounts(code)
			if err != nil {
				t.Fatal(err)
			}
			sum += a.Amount.Minor - a.Discount.Minor + a.Tax.Minor
			if off := a.Amount.Minor - l.Quantity*l.UnitAmount; max(off, -off) > money.Step(code)/2 {
				t.Fatalf("%d × %d = %d", l.Quantity, l.UnitAmount, a.Amount.Minor)
			}
		}
		for name, a := range map[string]money.Amount{"subtotal": got.Subtotal, "discount": got.Discount, "tax": got.Tax, "total": got.Total} {
			if a.Currency != code || a.Minor%money.Step(code) != 0 {
				t.Fatalf("%s %v", name, a)
			}
		}
		if got.Total.Minor != sum || sum != got.Subtotal.Minor-got.Discount.Minor+got.Tax.Minor {
			t.Fatalf("%+v, the lines add up to %d", got, sum)
		}
	})
}

// TestLinesInThousandths checks that thousandths are rounded once per amount: a line of 1.005 at 8.25 % is 1.010 and 0.080.
func TestLinesInThousandths(t *testing.T) {
	t.Parallel()
	a, err := domain.Line{Quantity: 1, UnitAmount: 1005, TaxRateBps: 825}.Amounts("KWD")
	if err != nil || a.Amount.Minor != 1010 || a.Discount.Minor != 0 || a.Tax.Minor != 80 {
		t.Errorf("%+v, %v", a, err)
	}
}
