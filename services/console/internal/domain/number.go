package domain

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
)

// Notation is how a language writes numbers: the decimal separator, a point or a comma, and the separator between groups of three
// digits. The zero Notation is English.
type Notation struct{ Point, Group string }

var errNumber = errors.New("no number in this notation")

// ambiguous is a number with one separator and three digits after it. Some languages read these as thousands and others as
// decimals.
type ambiguous struct{ Whole, Decimal string }

func (ambiguous) Error() string { return "a number that can be read in two ways" }

// blanks replaces all characters that separate groups of digits in some language, but are decimal separators in none, with the
// apostrophe.
var blanks = strings.NewReplacer(" ", "'", "\u00a0", "'", "\u2009", "'", "\u202f", "'", "’", "'")

func (n Notation) point() string { return cmp.Or(n.Point, ".") }

func (n Notation) group() string { return blanks.Replace(cmp.Or(n.Group, ",")) }

// foreign returns the decimal separator of other languages.
func (n Notation) foreign() string {
	if n.point() == "," {
		return "."
	}
	return ","
}

// Decimal parses a number, as people write it, with at most that many decimals. It returns the number in the format of
// money.Parse. Groups can be separated by the language's separator, by blanks, or by apostrophes. The decimal separator of other
// languages is accepted if it cannot separate groups. If a number has both readings, the error is of type ambiguous.
func (n Notation) Decimal(text string, places int) (string, error) {
	text = strings.Replace(blanks.Replace(strings.TrimSpace(text)), "−", "-", 1)
	text, minus := strings.CutPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(text, n.point())
	if a, b, ok := strings.Cut(text, n.foreign()); ok && !dotted && digits(a) && digits(b) {
		grouped := len(a) <= 3 && a[0] != '0' && len(b) == 3
		switch {
		case grouped && places >= len(b):
			return "", ambiguous{a + b, a + n.point() + b}
		case !grouped:
			whole, fraction, dotted = a, b, true
		}
	}
	whole, ok := n.ungrouped(whole)
	if !ok || dotted && !digits(fraction) || len(fraction) > places {
		return "", errNumber
	}
	if minus {
		whole = "-" + whole
	}
	if dotted {
		whole += "." + fraction
	}
	return whole, nil
}

// ungrouped returns the digits of a whole number without the separators between its groups.
func (n Notation) ungrouped(whole string) (string, bool) {
	if digits(whole) {
		return whole, true
	}
	for _, sign := range []string{n.group(), "'"} {
		groups := strings.Split(whole, sign)
		ok := len(groups) > 1 && len(groups[0]) <= 3 && !strings.HasPrefix(groups[0], "0")
		for i, g := range groups {
			ok = ok && digits(g) && (i == 0 || len(g) == 3)
		}
		if ok {
			return strings.Join(groups, ""), true
		}
	}
	return "", false
}

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// write converts a number from money.Amount.Decimal to the notation.
func (n Notation) write(decimal string) string { return strings.Replace(decimal, ".", n.point(), 1) }

// number parses the text of a field. It returns otherwise for every error except an ambiguous number.
func (r Reader) number(name, text string, places int, otherwise error) (string, error) {
	out, err := r.Notation.Decimal(text, places)
	var both ambiguous
	if errors.As(err, &both) {
		return "", apperr.Field(name, "Is ambiguous. Write %s or %s.", both.Whole, both.Decimal)
	}
	if err != nil {
		return "", otherwise
	}
	return out, nil
}

// amount parses an amount in the tenant's currency.
func (r Reader) amount(name, text string) (money.Amount, error) {
	wrong := apperr.Field(name, "Must be an amount in %s, such as %s.", r.Currency, r.decimal(12500))
	plain, err := r.number(name, text, r.places(), wrong)
	if err != nil {
		return money.Amount{}, err
	}
	a, err := money.Parse(plain, r.Currency)
	if err != nil {
		return a, wrong
	}
	return a, nil
}

// percent parses a percentage as basis points.
func (r Reader) percent(name, text string) (int64, error) {
	wrong := apperr.Field(name, "Must be a percentage with at most two decimals, such as %s.", r.Notation.write("12.5"))
	plain, err := r.number(name, strings.TrimSuffix(text, "%"), 2, wrong)
	if err != nil {
		return 0, err
	}
	a, err := money.Parse(plain, "EUR") // two decimals
	if err != nil {
		return 0, wrong
	}
	return a.Minor, nil
}

// whole parses a number without decimals.
func (r Reader) whole(name, text string) (int64, error) {
	wrong := apperr.Field(name, "Must be a whole number.")
	plain, err := r.number(name, text, 0, wrong)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(plain, 10, 64)
	if err != nil {
		return 0, wrong
	}
	return n, nil
}

// places returns the number of decimals of the tenant's currency.
func (r Reader) places() int {
	n, err := money.Decimals(r.Currency)
	if err != nil {
		return 2
	}
	return n
}

// decimal formats minor units of the tenant's currency as a form shows them.
func (r Reader) decimal(minor int64) string {
	return r.Notation.write(money.Amount{Minor: minor, Currency: r.Currency}.Decimal(r.places()))
}
