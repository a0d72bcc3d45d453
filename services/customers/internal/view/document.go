package view

import (
	"time"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// Document is an invoice or a quote as it is printed. Texts can contain line breaks. Empty ones are left out.
type Document struct {
	Title    string // such as "Invoice"
	Number   string
	Issued   time.Time
	Facts    []Fact // next to the recipient, such as the due date
	Operator domain.Invoicing
	Country  string // ISO 3166-1 code of the operator, which determines the format of amounts; "": English
	To       []string
	Lines    []domain.Line
	Currency string
	Totals   domain.Totals
	After    []Fact // after the total, such as the amount due
	Texts    []Fact // below the table, such as notes
}

// Fact is a name and its value.
type Fact struct{ Name, Value string }

// Amount formats an amount for the operator's country, such as "1.234,50 €".
func (d Document) Amount(a money.Amount) string {
	minor, err := currency.NewAmountFromInt64(a.Minor, a.Currency)
	if err != nil {
		return a.String()
	}
	for _, locale := range []string{locale(d.Country), "en"} {
		text := currency.NewFormatter(currency.NewLocale(locale)).Format(minor)
		if printable(text) { // the fonts lack the digits and signs of some languages
			return text
		}
	}
	return a.String()
}

// locale returns the most likely language of a country together with the country, such as "de-DE".
func locale(country string) string {
	tag, err := language.Parse("und-" + country)
	if country == "" || err != nil {
		return "en"
	}
	base, _ := tag.Base()
	return base.String() + "-" + country
}

// percent formats a rate, such as "8.25 %".
func percent(r money.Rate) string { return r.String() + " %" }
