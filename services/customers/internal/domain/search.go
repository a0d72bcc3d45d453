package domain

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold makes texts equal that differ only in case. It uses Unicode's simple folding, which never changes the number of characters
// and merges the three sigmas.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if least == '\u0345' { // a mark, whose uppercase form is that of the iota
			return 'ι'
		}
		return unicode.ToLower(least)
	}, s)
}

// variants maps typographic variants to the character that is typed for them. NFKD would turn some of them into a space.
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

// letters maps the folded Latin letters that NFKD does not decompose to what is typed for them.
var letters = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ħ", "h", "ŧ", "t", "ı", "i")

// SearchFold makes texts equal that differ only in case, accents and typographic variants. It applies NFKD, removes marks and
// invisible characters, and converts decimal digits of any script to 0 to 9.
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
		case variants[r] != 0: // NFKD creates some of them, such as ` from its full-width form
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
		if low := rune(t.Lo); low <= r && r <= rune(t.Hi) {
			return '0' + (r-low)%10
		}
	}
	return r
}

// The bounds of the search terms of a resource.
const (
	maxSearchTerms = 400 // from names, e-mail address and company; further ones are not stored
	maxTermLength  = 255 // characters of a term; further ones are neither stored nor compared
)

// SearchTerms returns the search terms of the customer.
func (c Customer) SearchTerms() []string {
	return append(searchTerms(&c.FirstName, c.LastName, &c.Email, c.Company), phoneEntries(c.Phone)...)
}

// searchTerms returns the search terms of texts. Each folded token between spaces is a term, and so is the rest of the token from
// the start of each further run of letters and digits. So "anna.smith@example.com" is found by prefixes of itself, of
// "smith@example.com", of "example.com" and of "com".
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

// Prefix is the half-open range, in byte order, of the search terms that begin with a text.
type Prefix struct{ From, Before string }

func prefixOf(w string) Prefix { return Prefix{From: w, Before: after(w)} }

// exactly returns the range that contains only one entry of digits: PostgreSQL has no character smaller than U+0001.
func exactly(w string) Prefix { return Prefix{From: w, Before: w + "\x01"} }

// Term is one token of a search text: a resource must have a search term in one of the ranges.
type Term []Prefix

// Terms returns the terms of a search text. A token of digits also matches a part of a telephone number. So do consecutive tokens
// of digits, joined.
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
	return out
}

// longerThanAnyTerm bounds a prefix that has no next text.
const longerThanAnyTerm = maxTermLength + 1

// after returns the smallest text that is larger than every text that begins with w. UTF-8 sorts by bytes in the order of code
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

// maxPhoneDigits is the largest number of digits of a telephone number that can be searched. The longest text of a number has as
// many characters.
const maxPhoneDigits = 50

// minPhonePart is the smallest number of digits that finds a part of a telephone number.
const minPhonePart = 4

// minSubscriber is the smallest number of digits that can follow a country code without + or 00.
const minSubscriber = 6

// phone is a telephone number, as far as it can be derived from its digits.
type phone struct {
	digits   string // all of them
	national string // without country code and trunk zeros; for a number without + or 00, everything after its leading zeros
	code     string // the country code; "": it has none
	rest     string // for a number without + or 00: what follows code, without trunk zeros
	marked   bool   // the number begins with + or 00, so that its country code is known
}

// extension matches the extension at the end of a folded telephone number, such as "ext. 45", "x45", "#45" or ";ext=45" (RFC 3966).
var extension = regexp.MustCompile(`[0-9)][ ,;]*(?:ext(?:ension|n)?|x|#|durchwahl|poste)[ .:=#]*([0-9]{1,7}) *$`)

// withoutExtension returns a folded telephone number without its extension, and the extension or "".
func withoutExtension(text string) (number, ext string) {
	at := extension.FindStringSubmatchIndex(text)
	if at == nil {
		return text, ""
	}
	return text[:at[0]+1], text[at[2]:at[3]]
}

// parsePhone reads the digits of a text that SearchFold folded.
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

// callingCode returns the country code at the start of digits. ITU-T E.164 assigns codes of one, two or three digits.
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

// A search term for a telephone number begins with a space, which no other search term does, and a letter for its kind.
const (
	phoneInside   = " i" // the digits from any position on
	phoneFull     = " f" // country code and national number
	phoneNational = " m" // national number, if the country code is known
	phoneBare     = " n" // all digits of a number without + or 00, without leading zeros
)

// phoneEntries returns the search terms of a telephone number, at most six more than it has digits. A number with an extension is
// found with and without it.
func phoneEntries(text *string) []string {
	if text == nil {
		return nil
	}
	folded := SearchFold(*text)
	p := parsePhone(folded)
	if p.national == "" || len(p.digits) > maxPhoneDigits {
		return nil
	}
	var out []string
	for i := range len(p.digits) - minPhonePart + 1 {
		out = append(out, phoneInside+p.digits[i:])
	}
	out = append(out, p.entries()...)
	if number, ext := withoutExtension(folded); ext != "" {
		out = append(out, parsePhone(number).entries()...)
	}
	return out
}

// entries returns the search terms by which a whole number is found.
func (p phone) entries() []string {
	switch {
	case p.national == "":
		return nil
	case p.marked:
		return []string{phoneFull + p.code + p.national, phoneNational + p.national}
	case p.code != "":
		return []string{phoneBare + p.national, phoneFull + p.code + p.rest, phoneNational + p.rest}
	default:
		return []string{phoneBare + p.national}
	}
}

// PhoneTerm returns the term of a whole telephone number. Only digits count. A leading + or 00 and the country code may be missing
// in the text or in the stored number, but two known country codes must be equal. PhoneTerm returns nil for a text without digits.
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

// SamePhone reports whether two telephone numbers are equal: the filter of the list finds one by the other, and they have the same
// extension.
func SamePhone(stored, given string) bool {
	_, one := withoutExtension(SearchFold(stored))
	if _, other := withoutExtension(SearchFold(given)); one != other {
		return false
	}
	entries := phoneEntries(&stored)
	for _, p := range PhoneTerm(given) {
		if slices.ContainsFunc(entries, func(e string) bool { return p.From <= e && e < p.Before }) {
			return true
		}
	}
	return false
}

// phoneTerm returns the term of a token of a search text, which is a part of a number or a whole one.
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

// isPhoneText reports whether a token contains only digits and the characters that are written between them.
func isPhoneText(word string) bool {
	return strings.Trim(word, "0123456789+()[]-./") == ""
}

// phoneAround joins token i with the tokens before and after it that are also parts of a telephone number.
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
