package domain

import (
	"slices"
	"strings"
)

// maxPhoneDigits is the most digits of a telephone number by which it is found: its longest text has as many characters.
const maxPhoneDigits = 50

// minPhonePart is the least number of digits by which a search text finds a part of a telephone number.
const minPhonePart = 4

// minSubscriber is the least number of digits that may follow a country code without + or 00.
const minSubscriber = 6

// phone is a telephone number as far as its digits tell it.
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

// The entries of a telephone number among the words of a resource begin with a space, which no word does, and the letter of what
// they hold.
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

// phoneTerm is the term of a word of a search text: part of a number, or a whole one.
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

// isPhoneText reports whether a word holds nothing but digits and what is written between them.
func isPhoneText(word string) bool {
	return strings.Trim(word, "0123456789+()[]-./") == ""
}

// phoneAround joins the words before and after word i that are parts of a telephone number too.
func phoneAround(words []string, i int) string {
	from, to := i, i+1
	for from > 0 && isPhoneText(words[from-1]) {
		from--
	}
	for to < len(words) && isPhoneText(words[to]) {
		to++
	}
	return strings.Join(words[from:to], "")
}
