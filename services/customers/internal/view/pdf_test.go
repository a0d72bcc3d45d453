package view_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/view"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// document returns an invoice with some lines, in the currency and the country of its operator.
func document(t testing.TB, currency, country string, lines ...domain.Line) view.Document {
	t.Helper()
	return priced(t, domain.NoTerms(currency), country, lines...)
}

// priced is document with terms.
func priced(t testing.TB, terms domain.PriceTerms, country string, lines ...domain.Line) view.Document {
	t.Helper()
	lines, totals, err := domain.Price(lines, terms)
	if err != nil {
		t.Fatal(err)
	}
	currency := terms.DiscountTotal.Currency
	operator := domain.Invoicing{Country: country}
	d := view.Document{
		Language: view.NewLanguage(operator.Language(nil)), Letter: country == "US" || country == "CA",
		Title: "Invoice", Number: "INV-2030-000042", Issued: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC),
		Facts: []view.Fact{{Name: "Date", Value: "2030-05-01"}, {Name: "Due", Value: "2030-05-15"}, {Name: "Booking", Value: "B-000017"}},
		From:  []string{"Harbour Boats Ltd", "Pier 4\n10115 Berlin", "VAT ID: DE 123 456 789"},
		To:    []string{"Zoë Ångström", "Łódź Sailing Ö.Ü.", "zoe@example.com", "Rue de l’Église 5\n75001 Paris"},
		Lines: lines, Currency: currency, Totals: totals,
		Texts: []view.Fact{{Name: "Notes", Value: "Thank you. Ευχαριστώ. Спасибо."}},
	}
	d.After = []view.Fact{{Name: "Paid", Value: d.Language.Amount(money.Amount{Minor: 1000, Currency: currency})}}
	return d
}

func line(description string, quantity, unit, discount, tax int64) domain.Line {
	return domain.Line{Description: description, Quantity: quantity, UnitAmount: unit, DiscountBps: discount, Taxes: domain.ShortTaxes(tax)}
}

func render(t testing.TB, d view.Document) []byte {
	t.Helper()
	out, err := view.PDF(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPDFIsTheGoldenFile(t *testing.T) {
	t.Parallel()
	many := make([]domain.Line, 60)
	for i := range many {
		many[i] = line(fmt.Sprintf("Line %d: a boat with a skipper, life jackets for all and a basket of what the harbour has to offer", i+1), int64(i+1), 12345, 250, 1900)
	}
	long := make([]domain.Line, 40)
	for i := range long {
		long[i] = line(strings.Repeat("A boat with a skipper and life jackets for all. ", 1+i*7%10), 1, 12345, 0, 0)
	}
	over := document(t, "EUR", "FR", long...)
	over.Texts = append(over.Texts, view.Fact{Name: "Terms", Value: strings.Repeat("What is not said here is as the law says. ", 60)})
	for name, d := range map[string]view.Document{
		"long":    over, // descriptions and texts continue over several pages
		"invoice": document(t, "EUR", "DE", line("Deposit for quote Q-000001", 1, 50000, 0, 0)),
		"pages":   document(t, "USD", "US", many...),
		"taxes": priced(t, domain.PriceTerms{Behavior: domain.TaxExclusive, DiscountTotal: money.Amount{Minor: 500, Currency: "CAD"}}, "CA",
			domain.Line{Description: "Canoe", Quantity: 2, UnitAmount: 5000, Taxes: []money.Tax{{Name: "GST", Rate: 50_000}, {Name: "QST", Rate: 99_750}}},
			domain.Line{Description: "Map", Quantity: 1, UnitAmount: 1999, FixedDiscount: new(int64(99)), Taxes: []money.Tax{{Name: "GST", Rate: 50_000}}},
			domain.Line{Description: "Deposit for equipment", Quantity: 1, UnitAmount: 10000}),
		"included": priced(t, domain.PriceTerms{Behavior: domain.TaxInclusive, DiscountTotal: money.Amount{Currency: "KWD"}}, "KW",
			domain.Line{Description: "Cruise", Quantity: 1, UnitAmount: 119_000, DiscountBps: 1000, Taxes: []money.Tax{{Name: strings.Repeat("A long name of a tax ", 2) + "of 50 char", Rate: 190_000}}}),
	} {
		got := render(t, d)
		if again := render(t, d); !bytes.Equal(got, again) {
			t.Errorf("%s: the same document gives other bytes", name)
		}
		file := "testdata/" + name + ".pdf"
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not %s: look at both, then go test -update", name, file)
		}
	}
}

// TestPDFOfTheLargestDocument checks that the largest document that the contract allows, with every character of Unicode's first
// plane, is printed.
func TestPDFOfTheLargestDocument(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := rune(1); r < 0x10000; r++ {
		if r < 0xd800 || r > 0xdfff {
			all.WriteRune(r)
		}
	}
	text := []rune(all.String() + "\U0001F600 \U0010FFFF")
	lines := make([]domain.Line, 100)
	for i := range lines {
		from := i * 600 % (len(text) - 5000)
		lines[i] = line(string(text[from:from+5000]), 10_000, 99_999, 9999, 10_000)
	}
	d := document(t, "JPY", "JP", lines...)
	d.Texts = []view.Fact{{Name: "Notes", Value: strings.Repeat("W", 5000)}, {Name: "Terms", Value: string(text[:5000])}}
	d.To = []string{strings.Repeat("W", 200), strings.Repeat("é\n", 250)}
	d.From[1] = strings.Repeat("W ", 250)
	got := render(t, d)
	if pages := bytes.Count(got, []byte("/Type /Page\n")); !bytes.HasPrefix(got, []byte("%PDF-")) || pages < 20 || pages > view.MaxPages {
		t.Errorf("%.20q, %d pages", got, pages)
	}
}

// TestCharactersThatAreNotInTheFonts checks that a character that the fonts lack becomes a box, that each kind of space becomes a
// space or a non-breaking space, and that invisible characters are removed.
func TestCharactersThatAreNotInTheFonts(t *testing.T) {
	t.Parallel()
	const text, printed = "日本\u00a0\u202f\tZoë\u200b\x07\u00ad 😀\r\nΩ", "□□\u00a0\u00a0 Zoë □\nΩ"
	if a, b := render(t, document(t, "EUR", "DE", line(text, 1, 100, 0, 0))), render(t, document(t, "EUR", "DE", line(printed, 1, 100, 0, 0))); !bytes.Equal(a, b) {
		t.Errorf("%q is not printed as %q", text, printed)
	}
}

func BenchmarkPDF(b *testing.B) {
	lines := make([]domain.Line, 150)
	for i := range lines {
		lines[i] = line("A boat with a skipper, life jackets for all and a basket of what the harbour has to offer", 3, 12345, 250, 1900)
	}
	d := document(b, "EUR", "DE", lines...)
	for b.Loop() {
		render(b, d)
	}
}
