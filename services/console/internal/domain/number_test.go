package domain_test

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/console/internal/domain"
)

// notations are the notations of some languages, as in CLDR.
var notations = map[string]domain.Notation{
	"en": {Point: ".", Group: ","}, "de": {Point: ",", Group: "."}, "es": {Point: ",", Group: "."}, "fr": {Point: ",", Group: "\u202f"}, "de-CH": {Point: ".", Group: "’"},
}

// entries are numbers as people write them, and the expected value for each currency. "" means that the number is refused, and "?"
// that it is refused with both readings.
var entries = []struct{ lang, text, jpy, usd, kwd string }{
	{"en", "1250", "1250", "1250.00", "1250.000"},
	{"en", "1,250", "1250", "1250.00", "?"},
	{"en", "-1,250", "-1250", "-1250.00", "?"},
	{"en", "1,250.50", "", "1250.50", "1250.500"},
	{"en", "1,250,000", "1250000", "1250000.00", "1250000.000"},
	{"en", "1.250", "", "", "1.250"},
	{"en", "1.25", "", "1.25", "1.250"},
	{"en", "12,5", "", "12.50", "12.500"},
	{"en", "12,50", "", "12.50", "12.500"},
	{"en", "0,250", "", "", "0.250"},
	{"en", "1250,500", "", "", "1250.500"},
	{"en", "1.250,50", "", "", ""},
	{"en", "1,25,000", "", "", ""},
	{"en", "1,2500", "", "", ""},
	{"en", "12 50", "", "", ""},
	{"en", "1 250", "1250", "1250.00", "1250.000"},
	{"en", "1'250.5", "", "1250.50", "1250.500"},
	{"de", "1.250", "1250", "1250.00", "?"},
	{"de", "1.250,50", "", "1250.50", "1250.500"},
	{"de", "1,250", "", "", "1.250"},
	{"de", "1,25", "", "1.25", "1.250"},
	{"de", "12.5", "", "12.50", "12.500"},
	{"de", "1,250.50", "", "", ""},
	{"de", "1.250.000", "1250000", "1250000.00", "1250000.000"},
	{"es", "1.250", "1250", "1250.00", "?"},
	{"fr", "1\u202f250,50", "", "1250.50", "1250.500"},
	{"fr", "1 250,50", "", "1250.50", "1250.500"},
	{"fr", "1\u00a0250", "1250", "1250.00", "1250.000"},
	{"fr", "1.250", "", "", "?"},
	{"de-CH", "1’250.50", "", "1250.50", "1250.500"},
	{"de-CH", "1'250", "1250", "1250.00", "1250.000"},
	{"en", "−5", "-5", "-5.00", "-5.000"},
	{"en", "", "", "", ""},
	{"en", "-", "", "", ""},
	{"en", ".", "", "", ""},
	{"en", ",", "", "", ""},
	{"en", "1,", "", "", ""},
	{"en", ",5", "", "", ""},
	{"en", "1.", "", "", ""},
	{"en", "1e3", "", "", ""},
	{"en", "--5", "", "", ""},
	{"en", "0,250,000", "", "", ""},
	{"en", "1,250 000", "", "", ""},
	{"en", "٣", "", "", ""},
}

// numberOf returns a whole number as the API returns it.
func numberOf(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// readAmount returns the amount that a form reads as a plain decimal; "" if it is refused, "?" if the error names two readings.
func readAmount(t *testing.T, lang, code, text string) string {
	t.Helper()
	r := domain.Reader{Currency: code, Notation: notations[lang]}
	body, err := r.Body([]forms.Field{{Name: "amount_minor", Kind: "integer"}}, url.Values{"amount_minor": {text}})
	if err != nil {
		if said := apperr.As(err).Message; strings.HasPrefix(said, "Is ambiguous.") {
			return "?"
		}
		return ""
	}
	minor, ok := body["amount_minor"].(int64)
	if !ok {
		return ""
	}
	places, err := money.Decimals(code)
	if err != nil {
		t.Fatal(err)
	}
	return money.Amount{Minor: minor}.Decimal(places)
}

// TestAmountsByLanguage checks that amounts are read in the notation of the page's language, and that ambiguous ones are refused.
func TestAmountsByLanguage(t *testing.T) {
	t.Parallel()
	for _, tc := range entries {
		for code, want := range map[string]string{"JPY": tc.jpy, "USD": tc.usd, "KWD": tc.kwd} {
			if got := readAmount(t, tc.lang, code, tc.text); got != want {
				t.Errorf("%q in %s, %s: %q, want %q", tc.text, tc.lang, code, got, want)
			}
		}
	}
}

// TestAmbiguousAmountsHaveAnExample checks that the error of an ambiguous amount shows how to write both readings, and that each
// one is read accordingly.
func TestAmbiguousAmountsHaveAnExample(t *testing.T) {
	t.Parallel()
	for lang, want := range map[string]string{"en": "Is ambiguous. Write 1250 or 1.250.", "de": "Is ambiguous. Write 1250 or 1,250."} {
		r := domain.Reader{Currency: "KWD", Notation: notations[lang]}
		text := strings.ReplaceAll("1_250", "_", notations[lang].Group)
		_, err := r.Body([]forms.Field{{Name: "amount_minor", Kind: "integer"}}, url.Values{"amount_minor": {text}})
		if got := apperr.As(err).Message; got != want {
			t.Errorf("%s: %q", lang, got)
		}
		one, other, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(want, "Is ambiguous. Write "), "."), " or ")
		if a, b := readAmount(t, lang, "KWD", one), readAmount(t, lang, "KWD", other); a != "1250.000" || b != "1.250" {
			t.Errorf("%s: %s and %s", lang, a, b)
		}
	}
}

// TestAmountsAreReadBack checks that an amount written in a language, in a form or by CLDR, is read back as the same amount.
func TestAmountsAreReadBack(t *testing.T) {
	t.Parallel()
	for lang, notation := range notations {
		for _, code := range []string{"JPY", "KRW", "USD", "EUR", "KWD", "TND"} {
			r := domain.Reader{Currency: code, Notation: notation}
			f := forms.Field{Name: "amount_minor", Kind: "integer"}
			places, err := money.Decimals(code)
			if err != nil {
				t.Fatal(err)
			}
			cldr := currency.NewFormatter(currency.NewLocale(lang))
			cldr.CurrencyDisplay = currency.DisplayNone
			rapid.Check(t, func(t *rapid.T) {
				minor := rapid.Int64Range(-99_999_999_999, 99_999_999_999).Draw(t, "minor")
				a, err := currency.NewAmount(money.Amount{Minor: minor}.Decimal(places), code)
				if err != nil {
					t.Fatal(err)
				}
				shown := r.Form([]forms.Field{f}, domain.Object{"amount_minor": numberOf(minor)}).Get("amount_minor")
				for _, text := range []string{shown, cldr.Format(a)} {
					body, err := r.Body([]forms.Field{f}, url.Values{"amount_minor": {text}})
					if err != nil || body["amount_minor"] != minor {
						t.Fatalf("%s, %s: %d is written %q and read %v, %v", lang, code, minor, text, body, err)
					}
				}
			})
		}
	}
}

// TestOtherNumbersByLanguage checks that percentages and whole numbers also follow the language.
func TestOtherNumbersByLanguage(t *testing.T) {
	t.Parallel()
	percent, count := forms.Field{Name: "multiplier_bps", Kind: "integer"}, forms.Field{Name: "guest_count", Kind: "integer"}
	for _, tc := range []struct {
		f          forms.Field
		lang, text string
		want       any // nil: refused
	}{
		{percent, "en", "12.5 %", int64(1250)},
		{percent, "de", "12,5\u00a0%", int64(1250)},
		{percent, "de", "12.5", int64(1250)},
		{percent, "de", "1.250 %", int64(125000)},
		{percent, "en", "1.234", nil},
		{percent, "de", "1,234", nil},
		{percent, "en", "%", nil},
		{count, "en", "1,250", int64(1250)},
		{count, "de", "1.250", int64(1250)},
		{count, "en", "1.250", nil},
		{count, "de", "1,250", nil},
		{count, "en", "3.0", nil},
		{count, "fr", "1 250", int64(1250)},
		{count, "en", "99999999999999999999", nil},
	} {
		body, err := domain.Reader{Currency: "KWD", Notation: notations[tc.lang]}.Body([]forms.Field{tc.f}, url.Values{tc.f.Name: {tc.text}})
		if got := body[tc.f.Name]; got != tc.want || (err == nil) == (tc.want == nil) {
			t.Errorf("%q in %s: %v, %v, want %v", tc.text, tc.lang, got, err, tc.want)
		}
	}
}

// TestBlankNumbers checks that a blank number is never 0: it is refused if it is required, becomes null if null is allowed, and is
// otherwise not sent.
func TestBlankNumbers(t *testing.T) {
	t.Parallel()
	rules := forms.Field{Name: "refund_rules", Kind: "array", Items: &forms.Field{Fields: []forms.Field{{Name: "hours_before", Kind: "integer", Required: true}, {Name: "percent", Kind: "integer", Required: true}}}}
	deposit, bps := forms.Field{Name: "deposit_value", Kind: "integer"}, forms.Field{Name: "multiplier_bps", Kind: "integer"}
	hold := forms.Field{Name: "hold_ttl_minutes", Kind: "integer", Nullable: true}
	r := domain.Reader{Currency: "USD"}
	for name, tc := range map[string]struct {
		f    forms.Field
		form url.Values
		was  domain.Object
		at   string // field of the refusal; "": none
	}{
		"a refund percentage":        {rules, url.Values{"refund_rules.0.hours_before": {"24"}, "refund_rules.0.percent": {""}}, nil, "refund_rules.0.percent"},
		"the hours of a rule":        {rules, url.Values{"refund_rules.0.hours_before": {" "}, "refund_rules.0.percent": {"50"}}, nil, "refund_rules.0.hours_before"},
		"a percentage as a deposit":  {deposit, url.Values{"deposit_type": {"percentage"}, "deposit_value": {""}}, nil, "deposit_value"},
		"an amount as a deposit":     {deposit, url.Values{"deposit_type": {"flat"}, "deposit_value": {" "}}, nil, "deposit_value"},
		"no deposit":                 {deposit, url.Values{"deposit_type": {"none"}, "deposit_value": {""}}, nil, ""},
		"a price that was there":     {bps, url.Values{"multiplier_bps": {""}}, domain.Object{"multiplier_bps": numberOf(11500)}, "multiplier_bps"},
		"a limit that may be absent": {hold, url.Values{"hold_ttl_minutes": {""}}, domain.Object{"hold_ttl_minutes": numberOf(30)}, ""},
	} {
		read := func() (map[string]any, error) { return r.Body([]forms.Field{tc.f}, tc.form) }
		if tc.was != nil {
			read = func() (map[string]any, error) { return r.Changes([]forms.Field{tc.f}, tc.form, tc.was) }
		}
		body, err := read()
		at := ""
		if err != nil {
			at = apperr.As(err).Fields[0].Field
		}
		if v := body[tc.f.Name]; at != tc.at || tc.at == "" && v != nil {
			t.Errorf("%s: %v, refused at %q", name, body, at)
		}
	}
}
