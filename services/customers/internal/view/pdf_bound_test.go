package view_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/view"
)

var pageObjects = regexp.MustCompile(`/Type /Page\b[^s]`)

func pagesOf(pdf []byte) int { return len(pageObjects.FindAll(pdf, -1)) }

// TestDocumentsHaveABound checks that the largest valid documents stay within the maximum number of pages, including their totals,
// and that blank lines take no pages.
func TestDocumentsHaveABound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		pages int
	}{
		"blank lines": {strings.Repeat("\n", 4999) + "x", 16},
		"spaces":      {strings.Repeat(" \n", 2499) + "x", 16},
		"returns":     {"x" + strings.Repeat("\r\n", 2499), 16},
		"short lines": {strings.Repeat("x\n", 2500), view.MaxPages},
		"wide words":  {strings.Repeat("W", 5000), view.MaxPages},
		"separators":  {strings.Repeat("x\u2028", 2500), view.MaxPages},
	} {
		lines := make([]domain.Line, 100)
		for i := range lines {
			lines[i] = line(c.text, 1, 12345, 0, 0)
			for n := range 3 { // so that each has its own row below the total
				lines[i].Taxes = append(lines[i].Taxes, money.Tax{Name: strings.Repeat("W", 50), Rate: money.Rate(3*i + n)})
			}
		}
		d := document(t, "EUR", "DE", lines...)
		d.Texts = []view.Fact{{Name: "Notes", Value: c.text}, {Name: "Terms", Value: c.text}}
		d.To = []string{c.text, c.text, c.text}
		d.From[1] = c.text
		if got := pagesOf(render(t, d)); got == 0 || got > c.pages {
			t.Errorf("%s: %d pages, want at most %d", name, got, c.pages)
		}
	}
}

// TestOnlyLongTextsAreCut checks that short descriptions stay complete next to one that is cut.
func TestOnlyLongTextsAreCut(t *testing.T) {
	t.Parallel()
	lines := []domain.Line{line(strings.Repeat("x\n", 2500), 1, 1, 0, 0)}
	for range 99 {
		lines = append(lines, line("a\nb\nc", 1, 1, 0, 0))
	}
	if got := pagesOf(render(t, document(t, "EUR", "DE", lines...))); got < 30 || got > view.MaxPages {
		t.Errorf("%d pages", got)
	}
}

// TestAnEndedContextEndsThePrinting checks that a document is not printed if the client has disconnected.
func TestAnEndedContextEndsThePrinting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := view.PDF(ctx, document(t, "EUR", "DE", line("x", 1, 1, 0, 0))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestAPlaceholderInATextIsPrinted checks that the placeholder for the number of pages does not occur in the texts of users: the
// text of a document does not change with its value.
func TestAPlaceholderInATextIsPrinted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{n}", "{nb}", "\ue0e1\ue0e1"} {
		with := document(t, "EUR", "DE", line(text, 1, 1, 0, 0))
		if bytes.Contains(render(t, with), []byte("\xe0\xe1\xe0\xe1")) {
			t.Errorf("%q: the placeholder is left in the document", text)
		}
	}
	if strings.Contains(view.Plain("\ue0e1\ue0e1"), "\ue0e1") {
		t.Error("a text has the characters of the placeholder")
	}
}

func TestWhatPrints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Mu\u0308ller":      "Müller",
		"Nguyễn Thị Hạnh":   "Nguyễn Thị Hạnh",
		"STRAẞE":            "STRAẞE",
		"Əliyev ə":          "Əliyev ə",
		"1\u202f250\u00a0€": "1\u00a0250\u00a0€",
		"co\u2011op":        "co-op",
		"\uff21\uff22":      "AB",
		"漢":                 "\u25a1",
		"a\u200bb\u202ec":   "abc",
		"₫₹₺₽₴₦₱₩₪₡₲₸₵₭₮":   "₫₹₺₽₴₦₱₩₪₡₲₸₵₭₮",
		"฿₼₾₿֏؋៛৳﷼":         "฿₼₾₿֏؋៛৳﷼",
		"Hawaiʻi ʼOumuamua": "Hawaiʻi ʼOumuamua",
		"a\u0085b\vc\fd":    "a\nb\nc\nd",
		"→ ≤ ■ ϣ":           "→ ≤ ■ ϣ",
	} {
		if got := view.Plain(text); got != want {
			t.Errorf("%q prints as %q, want %q", text, got, want)
		}
	}
	for _, code := range currency.GetCurrencyCodes() {
		for _, l := range []string{"en", "en-001", "de", "de-CH", "fr", "fr-CA"} {
			amount := view.NewLanguage(language.Make(l)).Amount(money.Amount{Minor: -1234567, Currency: code})
			if got := view.Plain(amount); strings.ReplaceAll(amount, "\u202f", "\u00a0") != got {
				t.Errorf("%s %s: %q prints as %q", l, code, amount, got)
			}
		}
	}
}

// TestTheHeadGoesOnOverPages checks that the longest operator and recipient are printed completely, over several pages.
func TestTheHeadGoesOnOverPages(t *testing.T) {
	t.Parallel()
	wide, short := strings.Repeat("W", 200), strings.Repeat("x\n", 249)
	longest := func(operator, recipient, fact string) []byte {
		d := document(t, "EUR", "DE", line("x", 1, 1, 0, 0))
		d.From = []string{wide, short + operator, strings.Repeat("W", 50)}
		d.To = []string{wide + "W", wide, strings.Repeat("W", 254), short + recipient}
		d.Facts = []view.Fact{{Name: "Valid until", Value: strings.Repeat("W ", 30) + fact}, {Name: "Status", Value: "open"}}
		return render(t, d)
	}
	got := longest("a", "a", "a")
	if n := pagesOf(got); n < 10 || n > 12 {
		t.Errorf("%d pages", n)
	}
	for name, other := range map[string][]byte{"operator": longest("b", "a", "a"), "recipient": longest("a", "b", "a"), "fact": longest("a", "a", "b")} {
		if bytes.Equal(got, other) {
			t.Errorf("the end of the %s is not printed", name)
		}
	}
}
