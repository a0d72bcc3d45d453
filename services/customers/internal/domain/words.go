package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold makes texts equal that differ only in case, by Unicode's simple folding: it never changes the number of
// characters, and the three sigmas become one.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, s)
}

// variants maps typographic variants to the character that is typed for them. NFKD would make a space of some of them.
var variants = func() map[rune]rune {
	to := map[rune]rune{}
	for typed, variants := range map[rune]string{
		'\'': "’‘‛ʼʻʹʽˈ´`′‵＇",
		'"':  "“”„‟″＂",
		'-':  "‐‑‒–—―−﹘﹣－",
	} {
		for _, r := range variants {
			to[r] = typed
		}
	}
	return to
}()

// letters are the Latin letters that NFKD leaves whole, folded, and what is typed for them.
var letters = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ħ", "h", "ŧ", "t", "ı", "i")

// SearchFold makes texts equal that differ only in case, accents and typographic variants: NFKD without marks and invisible
// characters, decimal digits of any script as 0 to 9.
func SearchFold(s string) string {
	if isASCII(s) {
		return Fold(strings.ReplaceAll(s, "`", "'"))
	}
	s = strings.Map(func(r rune) rune {
		if typed, ok := variants[r]; ok {
			return typed
		}
		return r
	}, s)
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsMark(r) || unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsDigit(r):
			return decimal(r)
		}
		return r
	}, norm.NFKD.String(s))
	return letters.Replace(Fold(s))
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// decimal returns the ASCII digit of the same value. Unicode lists decimal digits in runs from 0 to 9.
func decimal(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%10
		}
	}
	return r
}

// The bounds of what is kept of a resource for the search.
const (
	maxWords = 400 // words of names, e-mail address and company; the first ones are kept
	maxWord  = 255 // characters of a word; the first ones are kept, and compared
)

// Words returns the entries by which a search finds the customer.
func (c Customer) Words() []string {
	return append(words(&c.FirstName, c.LastName, &c.Email, c.Company), phoneEntries(c.Phone)...)
}

// words returns the words of texts: each part between spaces, folded, and its rest from the start of each further run of
// letters and digits. So "anna.smith@example.com" is found by the prefixes of itself, of "smith@example.com", of "example.com"
// and of "com".
func words(texts ...*string) []string {
	seen := map[string]bool{}
	var out []string
	for _, text := range texts {
		if text == nil {
			continue
		}
		for token := range strings.FieldsSeq(SearchFold(*text)) {
			inside := true // the whole token is a word, whatever its first character is
			for i, r := range token {
				begins := i == 0 || !inside && isWordRune(r)
				inside = isWordRune(r)
				if !begins {
					continue
				}
				if w := first(token[i:], maxWord); !seen[w] && len(out) < maxWords {
					seen[w] = true
					out = append(out, w)
				}
			}
		}
	}
	return out
}

// first returns the first n characters of a text.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// Prefix is the half-open range of words, in byte order, that begin with one text.
type Prefix struct{ From, Before string }

func prefixOf(w string) Prefix { return Prefix{From: w, Before: after(w)} }

// exactly is the range of one entry of digits: PostgreSQL has no smaller character than U+0001.
func exactly(w string) Prefix { return Prefix{From: w, Before: w + "\x01"} }

// Term is one word of a search text: a resource must have a word in one of the ranges.
type Term []Prefix

// Terms returns the terms of a search text. A word of digits is also a part of a telephone number; so are words of digits that
// follow each other, taken together.
func Terms(q string) []Term {
	var out []Term
	seen := map[string]bool{}
	tokens := strings.Fields(SearchFold(q))
	for i, w := range tokens {
		if w = first(w, maxWord); seen[w] {
			continue
		}
		seen[w] = true
		term := Term{prefixOf(w)}
		if isPhoneText(w) {
			term = append(term, phoneTerm(w)...)
			if whole := phoneAround(tokens, i); whole != w {
				term = append(term, phoneTerm(whole)...)
			}
		}
		out = append(out, term)
	}
	return withOldWords(q, out)
}

// withOldWords lets the terms find words that the version before has written, whose folding keeps accents, as long as they are
// not rewritten. It can go with the next release.
func withOldWords(q string, terms []Term) []Term {
	old := strings.Fields(Fold(q))
	if isASCII(q) || len(old) != len(terms) { // words that are equal now, or that are split now, were not equal or one word before
		return terms
	}
	for i, w := range old {
		if w != terms[i][0].From {
			terms[i] = append(terms[i], prefixOf(w))
		}
	}
	return terms
}

// longerThanAnyWord bounds a prefix without a next text.
const longerThanAnyWord = maxWord + 1

// after returns the smallest text that is larger than every text that begins with w: UTF-8 sorts by bytes as by code
// points.
func after(w string) string {
	for w != "" {
		r, size := utf8.DecodeLastRuneInString(w)
		w = w[:len(w)-size]
		switch {
		case r == 0xD7FF:
			return w + "\uE000" // surrogates are not characters
		case r < unicode.MaxRune:
			return w + string(r+1)
		}
	}
	return strings.Repeat(string(unicode.MaxRune), longerThanAnyWord)
}
