package domain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"holdfast.dev/services/customers/internal/domain"
)

// TestSearchIgnoresAccentsAndVariants checks that a name is found regardless of accents, case and typographic variants, both in the
// search text and in the stored name.
func TestSearchIgnoresAccentsAndVariants(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"muller", "Müller", "MU\u0308LLER", "Mu\u0308ller"},
		{"nunez", "Núñez", "Nu\u0301n\u0303ez", "NUÑEZ"},
		{"strasse", "Straße", "STRASSE", "STRAẞE"},
		{"o'brien", "O’Brien", "O‘Brien", "OʼBrien", "O´Brien", "O`Brien", "O＇Brien"},
		{"jean-luc", "Jean‑Luc", "Jean–Luc"},
		{"istanbul", "İstanbul", "ISTANBUL", "ıstanbul", "I\u0307stanbul"},
		{"soren", "Søren", "SØREN"},
		{"lukasz", "Łukasz", "łukasz"},
		{"aegir", "Ægir", "ægir"},
		{"dorde", "Đorđe", "ðorđe"},
		{"nguyen", "Nguyễn", "Nguye\u0302\u0303n", "Nguyê\u0303n"},
		{"ann", "Ａｎｎ", "An\u200bn"},
		{"αθηνα", "Αθήνα", "ΑΘΗΝΑ", "Αθη\u0301να"},
		{"οδυσσευς", "ΟΔΥΣΣΕΎΣ"},
		{"иои", "йой", "ЙОЙ", "и\u0306ои\u0306"},
		{"fink", "ﬁnk"},
		{"3m", "３Ｍ", "٣m"},
	} {
		for _, stored := range same {
			for _, q := range same {
				if !matches(domain.Customer{FirstName: "x", LastName: new(stored)}, q) {
					t.Errorf("%q does not find %q", q, stored)
				}
				if l := (domain.Lead{LastName: new(stored)}); !hasTerms(l.SearchTerms(), q) {
					t.Errorf("%q does not find the lead %q", q, stored)
				}
			}
		}
	}
	if matches(domain.Customer{FirstName: "Müller"}, "mullez") || matches(domain.Customer{FirstName: "Müller"}, "üller") {
		t.Error("another name is found")
	}
}

// TestPhoneTerm checks that the filter compares telephone numbers by their digits, and that the country code can be missing on one
// side.
func TestPhoneTerm(t *testing.T) {
	t.Parallel()
	german := []string{
		"+49 30 901820", "0049 30 901820", "+49 (0)30 90-18-20", "(+49) 30/901820", "4930901820", "030 901820", "30901820", "０３０ ９０１８２０", "tel: +49 30 901820",
	}
	american := []string{"+1 (555) 010-9999", "1-555-010-9999", "001 555 010 9999", "555.010.9999", "5550109999"}
	for _, same := range [][]string{german, american} {
		for _, stored := range same {
			c := domain.Customer{FirstName: "x", Phone: new(stored)}
			for _, q := range same {
				if !found(c, domain.PhoneTerm(q)) {
					t.Errorf("phone=%q does not find %q", q, stored)
				}
				if !domain.SamePhone(stored, q) {
					t.Errorf("%q and %q are not the same number", stored, q)
				}
				if !matches(c, q) && !strings.HasPrefix(q, "tel:") {
					t.Errorf("q=%q does not find %q", q, stored)
				}
			}
		}
	}
	for _, different := range [][2]string{
		{"+49 30 901820", "+43 30 901820"},
		{"+49 30 901820", "0049 30 901821"},
		{"030 901820", "030 9018201"},
		{"030 901820", "901820"},
		{"+1 555 010 9999", "010 9999"},
		{"", "1"},
		{"+", "1234"},
	} {
		for _, pair := range [][2]string{different, {different[1], different[0]}} {
			if found(domain.Customer{Phone: new(pair[0])}, domain.PhoneTerm(pair[1])) {
				t.Errorf("phone=%q finds %q", pair[1], pair[0])
			}
			if domain.SamePhone(pair[0], pair[1]) {
				t.Errorf("%q and %q are the same number", pair[0], pair[1])
			}
		}
	}
	if domain.PhoneTerm("none") != nil {
		t.Error("a text without digits is a number")
	}
}

// TestSearchByPartOfAPhone checks that a token of four or more digits is found inside a number.
func TestSearchByPartOfAPhone(t *testing.T) {
	t.Parallel()
	c := domain.Customer{FirstName: "Ann", LastName: new("42nd"), Phone: new("+49 (0170) 123-4567"), Email: "ann@example.com"}
	if !matches(domain.Customer{Phone: new("555 0012")}, "0012") || !matches(domain.Customer{Phone: new("0049 30 901820")}, "0049") {
		t.Error("zeros at the start of a part are not found")
	}
	for q, want := range map[string]bool{
		"1234567": true, "4567": true, "3456": true, "123-4567": true, "0170 12": true, "ann 4567": true, "4567 ann": true, "42": true,
		"+49 170 1234567": true, "170 123 45 67": true, "0170/1234567": true,
		"567": false, "123": false, "45678": false, "bob 4567": false, "a4567": false, "+43 170 1234567": false,
	} {
		if got := matches(c, q); got != want {
			t.Errorf("%q: got %v", q, got)
		}
	}
}

// TestPhoneWithAnExtension checks that a number with an extension is found with and without it, and that different extensions are
// different numbers.
func TestPhoneWithAnExtension(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{
		"+1 555 010 9999 ext. 45", "(555) 010-9999 x45", "555-010-9999 #45", "tel:+1-555-010-9999;ext=45", "+1 555 010 9999, Extension 45", "+1 555 010 9999 EXT45",
	} {
		c := domain.Customer{FirstName: "x", Phone: new(stored)}
		for _, q := range []string{"+1 555 010 9999", "555 010 9999", stored, "+1 555 010 9999 x45"} {
			if !found(c, domain.PhoneTerm(q)) {
				t.Errorf("phone=%q does not find %q", q, stored)
			}
		}
		if !matches(c, "555 010 9999") || !domain.SamePhone(stored, "+1 555 010 9999 x45") {
			t.Errorf("%q is another number", stored)
		}
		for _, q := range []string{"+1 555 010 9999", "+1 555 010 9999 x46"} {
			if domain.SamePhone(stored, q) {
				t.Errorf("%q and %q are the same number", stored, q)
			}
		}
	}
}

// TestSearchTermsAreBounded checks that a resource has a limited number of search terms of limited length, for any texts.
func TestSearchTermsAreBounded(t *testing.T) {
	t.Parallel()
	for _, filler := range []string{"a.", "\ufdfa", "㌀", "1", "㉑", "ä\u0301", "\U0010FFFF"} {
		text := strings.Repeat(filler, 255)
		c := domain.Customer{FirstName: text, LastName: new("b." + text), Email: "c." + text, Company: new("d." + text), Phone: new(strings.Repeat("1", 50))}
		longest := 0
		for _, w := range c.SearchTerms() {
			longest = max(longest, utf8.RuneCountInString(w))
		}
		if n := len(c.SearchTerms()); n > 460 || longest > 255 {
			t.Errorf("%q: %d terms, the longest of %d characters", filler, n, longest)
		}
	}
	for _, digits := range []int{1, 3, 4, 50, 51} {
		n := len(domain.Customer{Phone: new(strings.Repeat("1", digits))}.SearchTerms())
		if n > 50 || digits == 51 && n > 0 {
			t.Errorf("%d digits have %d entries", digits, n)
		}
	}
}

// TestFoldingTwice checks that folding a folded text changes nothing, even if a character decomposes to a typographic variant.
func TestFoldingTwice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"｀": "'", "\u1fef": "'", "︱": "-", "O｀Brien": "o'brien", "\u1fd0A": "ιa", "ΙΩΆΝΝΗΣ": "ιωαννησ"} {
		once := domain.SearchFold(text)
		if twice := domain.SearchFold(once); once != want || twice != want {
			t.Errorf("%q: %q, then %q, want %q", text, once, twice, want)
		}
	}
}

// TestEachTextFindsItself checks that a search for any stored text finds it, as typed and as folded.
func TestEachTextFindsItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 40, -1).Draw(t, "name")
		c := domain.Customer{FirstName: name}
		for _, q := range []string{name, strings.ToUpper(name), domain.SearchFold(name)} {
			// The uppercase form of U+0345, which is a mark, is a letter.
			if strings.EqualFold(strings.ToUpper(name), name) && !strings.ContainsRune(name, '\u0345') && !matches(c, q) {
				t.Fatalf("%q does not find %q", q, name)
			}
		}
	})
}

func hasTerms(terms []string, q string) bool {
	for _, term := range domain.Terms(q) {
		if !inRanges(terms, term) {
			return false
		}
	}
	return true
}
