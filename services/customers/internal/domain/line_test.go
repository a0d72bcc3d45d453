package domain_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

var pool = []money.Tax{{Name: "GST", Rate: 50_000}, {Name: "QST", Rate: 99_750}, {Name: "VAT", Rate: 190_000}, {Name: "Tax", Rate: 88_750}, {Name: "Zero"}, {Name: "All", Rate: money.MaxRate}}

// drawPriced draws the lines and the terms of a document.
func drawPriced(t *rapid.T) ([]domain.Line, domain.PriceTerms) {
	code := rapid.SampledFrom([]string{"KWD", "BHD", "JOD", "OMR", "TND", "USD", "JPY"}).Draw(t, "currency")
	lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) domain.Line {
		l := domain.Line{
			Description: "L", Quantity: rapid.Int64Range(1, 50).Draw(t, "quantity"), UnitAmount: rapid.Int64Range(0, 99_999).Draw(t, "unit"),
			DiscountBps: rapid.Int64Range(0, 10_000).Draw(t, "discount"),
			Taxes:       rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 3, rapid.ID[money.Tax]).Draw(t, "taxes"),
		}
		if rapid.Bool().Draw(t, "fixed") {
			l.DiscountBps, l.FixedDiscount = 0, new(rapid.Int64Range(0, l.Quantity*l.UnitAmount).Draw(t, "fixed discount"))
		}
		return l
	}), 1, 20).Draw(t, "lines")
	terms := domain.NoTerms(code)
	terms.Behavior = rapid.SampledFrom([]domain.TaxBehavior{domain.TaxExclusive, domain.TaxInclusive}).Draw(t, "behavior")
	_, totals, err := domain.Price(lines, terms)
	if err != nil {
		t.Fatal(err)
	}
	most := totals.Subtotal.Minor - totals.Discount.Minor
	terms.DiscountTotal.Minor = rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, most)).Draw(t, "discount total")
	return lines, terms
}

// TestTotalsCanBePaidByCard checks that, for any lines and terms, a card can pay the total, and that all amounts add up.
func TestTotalsCanBePaidByCard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines, terms := drawPriced(t)
		priced, got, err := domain.Price(lines, terms)
		if err != nil {
			t.Fatal(err)
		}
		code, own := terms.DiscountTotal.Currency, int64(0)
		var net, tax int64
		for i, l := range priced {
			a := l.Amounts
			net += a.Net()
			tax += a.Tax
			if a.Amount != l.Quantity*l.UnitAmount {
				t.Fatalf("%d × %d = %d", l.Quantity, l.UnitAmount, a.Amount)
			}
			if a.Discount < 0 || a.Discount > a.Amount || a.Tax < 0 || lines[i].Amounts != (domain.LineAmounts{}) {
				t.Fatalf("%+v", l)
			}
			if l.FixedDiscount != nil {
				own += *l.FixedDiscount
				continue
			}
			percentage, err := money.Amount{Minor: a.Amount, Currency: code}.Share(l.DiscountBps)
			if err != nil {
				t.Fatal(err)
			}
			own += percentage.Minor
		}
		for name, a := range map[string]money.Amount{"subtotal": got.Subtotal, "discount": got.Discount, "tax": got.Tax, "rounding": got.Rounding, "total": got.Total} {
			if a.Currency != code {
				t.Fatalf("%s %v", name, a)
			}
		}
		if off := got.Rounding.Minor; got.Total.Minor%money.Step(code) != 0 || max(off, -off) > money.Step(code)/2 {
			t.Fatalf("the total is %v with a rounding of %v", got.Total, got.Rounding)
		}
		var rows int64
		for _, r := range got.Breakdown {
			rows += r.Amount
		}
		want := net
		if terms.Behavior == domain.TaxExclusive {
			want += tax
		}
		if got.Total.Minor != want+got.Rounding.Minor || got.Tax.Minor != tax || rows != tax || got.Discount.Minor != own+terms.DiscountTotal.Minor ||
			got.Subtotal.Minor-got.Discount.Minor != net || got.PriceTerms != terms {
			t.Fatalf("%+v, the lines add up to %d with taxes of %d", got, want, tax)
		}
	})
}

// TestPrices checks documents with discounts and taxes.
func TestPrices(t *testing.T) {
	t.Parallel()
	vat, half := []money.Tax{{Name: "VAT", Rate: 190_000}}, []money.Tax{{Name: "VAT", Rate: 70_000}}
	for name, tc := range map[string]struct {
		code     string
		behavior domain.TaxBehavior
		discount int64
		lines    []domain.Line
		want     [4]int64 // subtotal, discount, tax, total
		amounts  []domain.LineAmounts
		rows     []money.TaxRow
	}{
		"of everything": {
			"EUR", domain.TaxExclusive, 1000,
			[]domain.Line{
				{Quantity: 2, UnitAmount: 5000, DiscountBps: 1000, Taxes: vat}, {Quantity: 1, UnitAmount: 5000, FixedDiscount: new(int64(500)), Taxes: half}, {Quantity: 1, UnitAmount: 0, Taxes: vat},
			},
			[4]int64{15000, 2500, 1875, 14375},
			[]domain.LineAmounts{{10000, 1667, 1583}, {5000, 833, 292}, {}},
			[]money.TaxRow{{Tax: vat[0], Taxable: 8333, Amount: 1583}, {Tax: half[0], Taxable: 4167, Amount: 292}},
		},
		"that include taxes": {
			"EUR", domain.TaxInclusive, 100,
			[]domain.Line{{Quantity: 1, UnitAmount: 12000, Taxes: vat}},
			[4]int64{12000, 100, 1900, 11900},
			[]domain.LineAmounts{{12000, 100, 1900}},
			[]money.TaxRow{{Tax: vat[0], Taxable: 10000, Amount: 1900}},
		},
		"in thousandths": {
			"KWD", domain.TaxExclusive, 0,
			[]domain.Line{{Quantity: 1, UnitAmount: 1005, Taxes: domain.ShortTaxes(825)}},
			[4]int64{1005, 0, 83, 1090}, // 1.088, rounded by 0.002
			[]domain.LineAmounts{{1005, 0, 83}},
			[]money.TaxRow{{Tax: money.Tax{Name: "Tax", Rate: 82_500}, Taxable: 1005, Amount: 83}},
		},
		"of 100 lines in thousandths": {
			"KWD", domain.TaxExclusive, 0,
			slices.Repeat([]domain.Line{{Quantity: 1, UnitAmount: 125}}, 100),
			[4]int64{12_500, 0, 0, 12_500},
			slices.Repeat([]domain.LineAmounts{{125, 0, 0}}, 100), nil,
		},
		"of one such line": {
			"KWD", domain.TaxExclusive, 0,
			[]domain.Line{{Quantity: 100, UnitAmount: 125}},
			[4]int64{12_500, 0, 0, 12_500},
			[]domain.LineAmounts{{12_500, 0, 0}},
			nil,
		},
	} {
		terms := domain.PriceTerms{Behavior: tc.behavior, DiscountTotal: money.Amount{Minor: tc.discount, Currency: tc.code}}
		lines, got, err := domain.Price(tc.lines, terms)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var amounts []domain.LineAmounts
		for _, l := range lines {
			amounts = append(amounts, l.Amounts)
		}
		if sums := [4]int64{got.Subtotal.Minor, got.Discount.Minor, got.Tax.Minor, got.Total.Minor}; sums != tc.want || !slices.Equal(amounts, tc.amounts) || !slices.Equal(got.Breakdown, tc.rows) {
			t.Errorf("%s: %v %v %v", name, sums, amounts, got.Breakdown)
		}
	}
}

// TestPricesAreBounded checks the error on each amount that is too large. The largest legal document has no overflow.
func TestPricesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 99_999_999_999
	all := []money.Tax{{Name: "A", Rate: money.MaxRate}, {Name: "B", Rate: money.MaxRate}, {Name: "C", Rate: money.MaxRate}}
	line := func(quantity, unit int64) domain.Line { return domain.Line{Quantity: quantity, UnitAmount: unit} }
	for name, tc := range map[string]struct {
		lines    []domain.Line
		discount int64
		field    string
	}{
		"an amount":            {[]domain.Line{line(1, 1), line(10_000, most)}, 0, "line_items.1.unit_amount"},
		"a sum":                {[]domain.Line{line(1, most), line(1, 1)}, 0, "line_items"},
		"a total with taxes":   {[]domain.Line{{Quantity: 1, UnitAmount: 25_000_000_000, Taxes: all}}, 0, "line_items"},
		"a fixed discount":     {[]domain.Line{{Quantity: 2, UnitAmount: 50, FixedDiscount: new(int64(101))}}, 0, "line_items.0.discount_amount"},
		"a discount in all":    {[]domain.Line{{Quantity: 2, UnitAmount: 50, FixedDiscount: new(int64(100))}}, 1, "discount_amount_total"},
		"a discount of a gift": {[]domain.Line{line(1, 0)}, 1, "discount_amount_total"},
	} {
		terms := domain.NoTerms("USD")
		terms.DiscountTotal.Minor = tc.discount
		_, _, err := domain.Price(tc.lines, terms)
		if !failsOn(err, tc.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var full []domain.Line
	for range 100 {
		full = append(full, domain.Line{Quantity: 1, UnitAmount: most / 400, Taxes: all})
	}
	if _, got, err := domain.Price(full, domain.NoTerms("USD")); err != nil || got.Total.Minor != 4*got.Subtotal.Minor {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLinesOfAnInput checks which taxes and discounts a line gets, and the error on each field.
func TestLinesOfAnInput(t *testing.T) {
	t.Parallel()
	defaults := []money.Tax{{Name: "VAT", Rate: 190_000}}
	euros := func(n int64) *money.Amount { return &money.Amount{Minor: n, Currency: "EUR"} }
	in := func(change func(*domain.LineInput)) []domain.LineInput {
		l := domain.LineInput{Description: "L", Quantity: 1, UnitAmount: *euros(100)}
		change(&l)
		return []domain.LineInput{l}
	}
	for name, tc := range map[string]struct {
		change func(*domain.LineInput)
		want   []money.Tax
	}{
		"default": {func(*domain.LineInput) {}, defaults},
		"none":    {func(l *domain.LineInput) { l.Taxes = &[]money.TaxInput{} }, nil},
		"named": {func(l *domain.LineInput) {
			l.Taxes = &[]money.TaxInput{{Name: "GST", Rate: "5.00"}, {Name: "GST", Rate: "9.975"}}
		}, []money.Tax{{Name: "GST", Rate: 50_000}, {Name: "GST", Rate: 99_750}}},
		"short": {func(l *domain.LineInput) { l.TaxRateBps = new(int64(887)) }, []money.Tax{{Name: "Tax", Rate: 88_700}}},
		"zero":  {func(l *domain.LineInput) { l.TaxRateBps = new(int64(0)) }, nil},
	} {
		got, err := domain.Lines(in(tc.change), "EUR", defaults)
		if err != nil || !slices.Equal(got[0].Taxes, tc.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for field, change := range map[string]func(*domain.LineInput){
		"unit_amount.currency":     func(l *domain.LineInput) { l.UnitAmount.Currency = "USD" },
		"discount_amount.currency": func(l *domain.LineInput) { l.Discount = &money.Amount{Minor: 1, Currency: "USD"} },
		"discount_amount":          func(l *domain.LineInput) { l.Discount, l.DiscountBps = euros(1), new(int64(0)) },
		"taxes":                    func(l *domain.LineInput) { l.Taxes, l.TaxRateBps = &[]money.TaxInput{}, new(int64(0)) },
		"taxes.1.name": func(l *domain.LineInput) {
			l.Taxes = &[]money.TaxInput{{Name: "GST", Rate: "5"}, {Name: "GST", Rate: "5.0"}}
		},
		"taxes.0.rate": func(l *domain.LineInput) { l.Taxes = &[]money.TaxInput{{Name: "GST", Rate: "101"}} },
	} {
		if _, err := domain.Lines(in(change), "EUR", nil); !failsOn(err, "line_items.0."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if got, err := domain.Lines(in(func(l *domain.LineInput) { l.Discount = euros(7) }), "EUR", nil); err != nil || *got[0].FixedDiscount != 7 {
		t.Errorf("%v, %v", got, err)
	}
}

// failsOn reports whether an error is a 422 on exactly one field.
func failsOn(err error, field string) bool {
	var e *apperr.Error
	return errors.As(err, &e) && len(e.Fields) == 1 && e.Fields[0].Field == field
}
