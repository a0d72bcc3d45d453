package domain

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"holdfast.dev/libs/money"
)

// vatNumber is the form of a VAT identification number: the prefix of a country with this tax (Council Directive 2006/112/EC, Article
// 215, and the United Kingdom and Switzerland) before digits and letters.
var vatNumber = regexp.MustCompile(
	`^(AT|BE|BG|CHE|CY|CZ|DE|DK|EE|EL|ES|FI|FR|GB|HR|HU|IE|IT|LT|LU|LV|MT|NL|PL|PT|RO|SE|SI|SK|XI)[ .-]?[0-9A-Z+*]{0,4}[0-9]`,
)

// IsVATNumber reports whether a tax ID is a VAT identification number.
func IsVATNumber(id string) bool { return vatNumber.MatchString(strings.ToUpper(id)) }

// reverseCharge is the name of a tax, or a part of it, that says that the customer owes the tax.
var reverseCharge = regexp.MustCompile(`(?i)reverse[\s\p{Z}\p{Pd}]*charge|steuerschuldnerschaft[\s\p{Z}]+des[\s\p{Z}]+leistungsempfängers|auto[\s\p{Z}\p{Pd}]*liquidation`)

// ReverseCharged reports whether the customer owes the tax of a line: the line has a tax of 0 % that is named so in English, German or
// French.
func ReverseCharged(lines []Line) bool {
	for _, l := range lines {
		for _, tax := range l.Taxes {
			if isReverseCharge(tax) {
				return true
			}
		}
	}
	return false
}

func isReverseCharge(tax money.Tax) bool {
	return tax.Rate == 0 && reverseCharge.MatchString(norm.NFC.String(tax.Name))
}
