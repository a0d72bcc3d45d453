package view_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/view"
)

func catalog(t *testing.T, lang string) map[string]string {
	t.Helper()
	raw, err := view.Locales.ReadFile("locales/" + lang + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTextsOfAllLanguages checks that each language of documents has each text, with the same placeholders, and that the code and the
// texts use the same ids.
func TestTextsOfAllLanguages(t *testing.T) {
	t.Parallel()
	placeholder := regexp.MustCompile(`{{\.\w+}}`)
	english := catalog(t, "en")
	for _, l := range domain.Languages {
		own := catalog(t, l)
		for id, text := range english {
			want, got := placeholder.FindAllString(text, -1), placeholder.FindAllString(own[id], -1)
			slices.Sort(want)
			slices.Sort(got)
			if own[id] == "" || !slices.Equal(want, got) {
				t.Errorf("%s: %s: %q", l, id, own[id])
			}
		}
		if len(own) != len(english) {
			t.Errorf("%s has %d texts, English %d", l, len(own), len(english))
		}
		for id, text := range own {
			if view.Plain(text) != text {
				t.Errorf("%s: %s: %q prints as %q", l, id, text, view.Plain(text))
			}
			if l == "fr" && regexp.MustCompile(`[^\x{a0}][:;!?]| %`).MatchString(text) {
				t.Errorf("%s: no non-breaking space in %q", id, text)
			}
		}
	}
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			code.Write(text)
		}
	}
	for id := range english {
		prefix, _, _ := strings.Cut(id, "_")
		if !strings.Contains(code.String(), `"`+id+`"`) && !strings.Contains(code.String(), `"`+prefix+`_"`) {
			t.Errorf("%q is used nowhere", id)
		}
	}
	for _, use := range regexp.MustCompile(`(?:\.T|\.fact|\.after|\.text)\("([a-z_]+[a-z])"`).FindAllStringSubmatch(code.String(), -1) {
		if english[use[1]] == "" {
			t.Errorf("%q has no text", use[1])
		}
	}
}

// TestLanguageOfADocument checks the language and the formats of a document: those of the customer's locale if it is English, German
// or French, else those of the operator's country, else English.
func TestLanguageOfADocument(t *testing.T) {
	t.Parallel()
	amount, rate := money.Amount{Minor: 123456789, Currency: "EUR"}, money.Rate(82_500)
	for _, tc := range []struct{ locale, country, want string }{
		{"", "", "en-001|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"", "ZZ", "en-ZZ|May 1, 2030|€1,234,567.89|8.25%|10,000"},
		{"", "US", "en-US|May 1, 2030|€1,234,567.89|8.25%|10,000"},
		{"", "GB", "en-GB|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"", "DE", "de-DE|01.05.2030|1.234.567,89_€|8,25_%|10.000"},
		{"", "AT", "de-AT|01.05.2030|€_1.234.567,89|8,25_%|10.000"},
		{"", "CH", "de-CH|01.05.2030|€_1’234’567.89|8.25%|10’000"},
		{"", "FR", "fr-FR|01/05/2030|1_234_567,89_€|8,25_%|10_000"},
		{"", "ES", "en-001|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"", "JP", "en-001|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"en", "", "en|May 1, 2030|€1,234,567.89|8.25%|10,000"},
		{"en", "GB", "en-GB|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"en", "DE", "en|May 1, 2030|€1,234,567.89|8.25%|10,000"},
		{"en-CA", "DE", "en-CA|May 1, 2030|€1,234,567.89|8.25%|10,000"},
		{"de", "US", "de|01.05.2030|1.234.567,89_€|8,25_%|10.000"},
		{"de", "AT", "de-AT|01.05.2030|€_1.234.567,89|8,25_%|10.000"},
		{"fr", "US", "fr|01/05/2030|1_234_567,89_€|8,25_%|10_000"},
		{"fr-CA", "US", "fr-CA|2030-05-01|1_234_567,89_€|8,25_%|10_000"},
		{"es-MX", "DE", "de-DE|01.05.2030|1.234.567,89_€|8,25_%|10.000"},
		{"es-MX", "MX", "en-001|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"nonsense-", "FR", "fr-FR|01/05/2030|1_234_567,89_€|8,25_%|10_000"},
		{"", "CH fr", "fr-CH|01.05.2030|1_234_567.89_€|8.25_%|10_000"},
		{"", "DE en-GB", "en-GB|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"", "US es", "en-001|1 May 2030|€1,234,567.89|8.25%|10,000"},
		{"de", "AT en", "de|01.05.2030|1.234.567,89_€|8,25_%|10.000"},
	} {
		country, own, _ := strings.Cut(tc.country, " ") // the operator's own language
		operator, locale := domain.Invoicing{Country: country, Locale: own}, &tc.locale
		if tc.locale == "" {
			locale = nil
		}
		tag := operator.Language(locale)
		l := view.NewLanguage(tag)
		got := strings.Join([]string{
			tag.String(), l.Date(civil.Date{Year: 2030, Month: 5, Day: 1}), l.Amount(amount), l.Percent(rate), l.Number("10000"),
		}, "|")
		if got = strings.NewReplacer("\u00a0", "_", "\u202f", "_").Replace(got); got != tc.want {
			t.Errorf("%q of an operator in %q:\n%s, want\n%s", tc.locale, tc.country, got, tc.want)
		}
	}
}

// TestValidity checks that a quote that ends at midnight is valid until the day before, and that other ends show their time.
func TestValidity(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ at, country, want string }{
		{"2030-05-01T22:00:00Z", "DE", "01.05.2030"}, // midnight in Berlin: the last whole day
		{"2030-05-01T12:30:00Z", "DE", "01.05.2030 14:30_CEST"},
		{"2030-01-01T12:30:00Z", "US", "January_1,_2030 1:30_PM_CET"},
		{"2030-01-01T12:30:00Z", "FR", "01/01/2030 13:30_CET"},
	} {
		expires, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		d := view.PrintedQuote(domain.Quote{ExpiresAt: &expires}, nil, domain.Invoicing{Country: tc.country}, berlin)
		if got := strings.ReplaceAll(d.Facts[2].Value, "\u00a0", "_"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.at, got, tc.want)
		}
	}
}
