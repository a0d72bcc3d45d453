package domain

import (
	"slices"
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
		case variants[r] != 0: // NFKD makes some of others, as ` of its full-width form
			return variants[r]
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
		if low := rune(t.Lo); low <= r && r <= rune(t.Hi) { //nolint:gosec // code points
			return '0' + (r-low)%10
		}
	}
	return r
}

// The bounds of the search terms of a resource.
const (
	maxSearchTerms = 400 // of names, e-mail address and company; the first ones are stored
	maxTermLength  = 255 // characters of a term; the first ones are stored and compared
)

// SearchTerms returns the search terms of the customer.
func (c Customer) SearchTerms() []string {
	return append(searchTerms(&c.FirstName, c.LastName, &c.Email, c.Company), phoneEntries(c.Phone)...)
}

// searchTerms returns the search terms of texts: each token between spaces, folded, and its rest from the start of each further
// run of letters and digits. So "anna.smith@example.com" is found by the prefixes of itself, of "smith@example.com", of
// "example.com" and of "com".
func searchTerms(texts ...*string) []string {
	seen := map[string]bool{}
	var out []string
	for _, text := range texts {
		if text == nil {
			continue
		}
		for token := range strings.FieldsSeq(SearchFold(*text)) {
			inside := true // the whole token is a term, regardless of its first character
			for i, r := range token {
				begins := i == 0 || !inside && isTermRune(r)
				inside = isTermRune(r)
				if !begins {
					continue
				}
				if w := first(token[i:], maxTermLength); !seen[w] && len(out) < maxSearchTerms {
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

func isTermRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// Prefix is the half-open range of search terms, in byte order, that begin with one text.
type Prefix struct{ From, Before string }

func prefixOf(w string) Prefix { return Prefix{From: w, Before: after(w)} }

// exactly is the range of one entry of digits: PostgreSQL has no smaller character than U+0001.
func exactly(w string) Prefix { return Prefix{From: w, Before: w + "\x01"} }

// Term is one token of a search text: a resource must have a search term in one of the ranges.
type Term []Prefix

// Terms returns the terms of a search text. A token of digits is also a part of a telephone number; so are consecutive tokens of
// digits, joined.
func Terms(q string) []Term {
	var out []Term
	seen := map[string]bool{}
	tokens := strings.Fields(SearchFold(q))
	for i, w := range tokens {
		if w = first(w, maxTermLength); seen[w] {
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
	return withOldTerms(q, out)
}

// withOldTerms lets the terms find search terms that the previous version has written, whose folding preserves accents, until they
// are rewritten. It can be deleted with the next release.
func withOldTerms(q string, terms []Term) []Term {
	old := strings.Fields(Fold(q))
	if isASCII(q) || len(old) != len(terms) { // tokens that are equal now or split now may not have been before
		return terms
	}
	for i, w := range old {
		if w != terms[i][0].From {
			terms[i] = append(terms[i], prefixOf(w))
		}
	}
	return terms
}

// longerThanAnyTerm bounds a prefix without a next text.
const longerThanAnyTerm = maxTermLength + 1

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
	return strings.Repeat(string(unicode.MaxRune), longerThanAnyTerm)
}

// maxPhoneDigits is the most digits of a telephone number by which it is found: its longest text has as many characters.
const maxPhoneDigits = 50

// minPhonePart is the least number of digits by which a search text finds a part of a telephone number.
const minPhonePart = 4

// minSubscriber is the least number of digits that may follow a country code without + or 00.
const minSubscriber = 6

// phone is a telephone number, as far as its digits determine it.
type phone struct {
	digits   string // all of them
	national string // without country code and trunk zeros; of a number without + or 00 all that follows its zeros
	code     string // the country code; "": it has none
	rest     string // of a number without + or 00: what follows code, without trunk zeros
	marked   bool   // the number begins with + or 00, so that its country code is known
}

// parsePhone reads the digits of a text that SearchFold has folded.
func parsePhone(text string) phone {
	at := strings.IndexFunc(text, isDigit)
	if at < 0 {
		return phone{}
	}
	digits := strings.Map(func(r rune) rune {
		if isDigit(r) {
			return r
		}
		return -1
	}, text)
	marked := strings.Contains(text[:at], "+") || strings.HasPrefix(digits, "00")
	if marked {
		after := strings.TrimLeft(digits, "0")
		code := callingCode(after)
		return phone{digits: digits, national: strings.TrimLeft(after[len(code):], "0"), code: code, marked: true}
	}
	p := phone{digits: digits, national: strings.TrimLeft(digits, "0")}
	if code := callingCode(digits); p.national == digits && len(digits)-len(code) >= minSubscriber {
		p.code, p.rest = code, strings.TrimLeft(digits[len(code):], "0")
	}
	return p
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// callingCode returns the country code with which digits begin, as ITU-T E.164 assigns them: one, two or three digits.
func callingCode(digits string) string {
	const two = "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 " +
		"81 82 84 86 90 91 92 93 94 95 98"
	switch {
	case strings.HasPrefix(digits, "1"), strings.HasPrefix(digits, "7"):
		return digits[:1]
	case len(digits) >= 2 && slices.Contains(strings.Fields(two), digits[:2]):
		return digits[:2]
	default:
		return digits[:min(3, len(digits))]
	}
}

// The entries of a telephone number among the search terms of a resource begin with a space, which no other term does, and the
// letter of what they hold.
const (
	phoneInside   = " i" // the digits from one of them on
	phoneFull     = " f" // country code and national number
	phoneNational = " m" // national number, where the country code is known
	phoneBare     = " n" // all digits of a number without + or 00, without its zeros
)

// phoneEntries returns the entries by which a telephone number is found, no more than it has digits.
func phoneEntries(text *string) []string {
	if text == nil {
		return nil
	}
	p := parsePhone(SearchFold(*text))
	if p.national == "" || len(p.digits) > maxPhoneDigits {
		return nil
	}
	var out []string
	for i := range len(p.digits) - minPhonePart + 1 {
		out = append(out, phoneInside+p.digits[i:])
	}
	switch {
	case p.marked:
		out = append(out, phoneFull+p.code+p.national, phoneNational+p.national)
	case p.code != "":
		out = append(out, phoneBare+p.national, phoneFull+p.code+p.rest, phoneNational+p.rest)
	default:
		out = append(out, phoneBare+p.national)
	}
	return out
}

// PhoneTerm is the term of a whole telephone number: only its digits count, a leading + or 00 and the country code may be
// missing from it or from the stored number. Two country codes that are known must be equal. It is nil for a text without digits.
func PhoneTerm(text string) Term { return parsePhone(SearchFold(text)).whole() }

func (p phone) whole() Term {
	switch {
	case p.national == "":
		return nil
	case p.marked:
		return Term{exactly(phoneFull + p.code + p.national), exactly(phoneBare + p.national)}
	}
	t := Term{exactly(phoneNational + p.national), exactly(phoneBare + p.national)}
	if p.code != "" {
		t = append(t, exactly(phoneFull+p.code+p.rest), exactly(phoneBare+p.rest))
	}
	return t
}

// phoneTerm is the term of a token of a search text: part of a number, or a whole one.
func phoneTerm(word string) Term {
	p := parsePhone(word)
	if len(p.digits) < minPhonePart {
		return nil
	}
	t := append(Term{prefixOf(phoneInside + p.digits)}, p.whole()...)
	if part := strings.TrimLeft(p.digits, "0"); part != p.digits && len(part) >= minPhonePart {
		t = append(t, prefixOf(phoneInside+part))
	}
	return t
}

// isPhoneText reports whether a token holds only digits and the characters that are written between them.
func isPhoneText(word string) bool {
	return strings.Trim(word, "0123456789+()[]-./") == ""
}

// phoneAround joins the tokens before and after token i that are parts of a telephone number too.
func phoneAround(tokens []string, i int) string {
	from, to := i, i+1
	for from > 0 && isPhoneText(tokens[from-1]) {
		from--
	}
	for to < len(tokens) && isPhoneText(tokens[to]) {
		to++
	}
	return strings.Join(tokens[from:to], "")
}
