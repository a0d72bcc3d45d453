package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"
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

// Words returns the words by which a search finds the customer.
func (c Customer) Words() []string { return words(&c.FirstName, c.LastName, &c.Email, c.Company) }

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
		for token := range strings.FieldsSeq(Fold(*text)) {
			inside := true // the whole token is a word, whatever its first character is
			for i, r := range token {
				begins := i == 0 || !inside && isWordRune(r)
				inside = isWordRune(r)
				if begins && !seen[token[i:]] {
					seen[token[i:]] = true
					out = append(out, token[i:])
				}
			}
		}
	}
	return out
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// Prefix is the half-open range of words, in byte order, that begin with one text.
type Prefix struct{ From, Before string }

// Prefixes returns the ranges for the words of a search text.
func Prefixes(q string) []Prefix {
	var out []Prefix
	seen := map[string]bool{}
	for w := range strings.FieldsSeq(Fold(q)) {
		if !seen[w] {
			seen[w] = true
			out = append(out, Prefix{From: w, Before: after(w)})
		}
	}
	return out
}

// longerThanAnyWord bounds a prefix without a next text: fields have at most 255 characters.
const longerThanAnyWord = 256

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
