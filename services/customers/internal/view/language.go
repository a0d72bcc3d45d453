package view

import (
	"embed"
	"strings"
	"sync"
	"time"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/locale"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// The texts of documents. Each file is a language.
//
//go:embed locales/*.json
var locales embed.FS

var messages = sync.OnceValue(func() *locale.Messages {
	m, err := locale.New(locales, language.English)
	if err != nil {
		panic("view: the embedded texts are broken: " + err.Error()) // a build error
	}
	return m
})

// Language is the language of a document, and the format of its dates, numbers and amounts.
type Language struct {
	format

	texts           locale.Text
	amounts, number *currency.Formatter
}

// format contains the layouts of dates and times of day, and what stands between a number and a percent sign.
type format struct{ date, clock, percent string }

// formats contains the formats of CLDR by locale. A locale without one has that of its parent, such as en-001 for en-GB. The formats
// of numbers and amounts are those of the library of currencies.
var formats = map[string]format{
	"en":     {date: "January 2, 2006", clock: "3:04 PM MST"},
	"en-001": {date: "2 January 2006", clock: "15:04 MST"},
	"en-CA":  {date: "January 2, 2006", clock: "3:04 PM MST"},
	"de":     {date: "02.01.2006", clock: "15:04 MST", percent: nbsp},
	"de-CH":  {date: "02.01.2006", clock: "15:04 MST"},
	"de-LI":  {date: "02.01.2006", clock: "15:04 MST"},
	"fr":     {date: "02/01/2006", clock: "15:04 MST", percent: nbsp},
	"fr-CA":  {date: "2006-01-02", clock: "15 h 04 MST", percent: nbsp},
	"fr-CH":  {date: "02.01.2006", clock: "15:04 MST", percent: nbsp},
}

const nbsp = "\u00a0"

// NewLanguage returns the language of a document, which is one of domain.Languages.
func NewLanguage(tag language.Tag) Language {
	base, _ := tag.Base()
	id := currency.NewLocale(short(tag))
	l := Language{texts: messages().For(base.String(), ""), amounts: currency.NewFormatter(id), number: currency.NewFormatter(id)}
	l.number.CurrencyDisplay, l.number.MinDigits = currency.DisplayNone, 0
	for ok := false; !ok; tag = tag.Parent() {
		l.format, ok = formats[short(tag)]
	}
	return l
}

// short returns a tag as its language and region, without script, variants and extensions.
func short(tag language.Tag) string {
	base, _ := tag.Base()
	if region, confidence := tag.Region(); confidence == language.Exact {
		return base.String() + "-" + region.String()
	}
	return base.String()
}

// Amount formats an amount, such as "1.234,50 €".
func (l Language) Amount(a money.Amount) string {
	minor, err := currency.NewAmountFromInt64(a.Minor, a.Currency)
	if err != nil {
		return a.String()
	}
	return l.amounts.Format(minor)
}

// anyCurrency is one of which the formatter of numbers shows nothing.
const anyCurrency = "USD"

// Number formats a decimal, such as "10,000" or "8.25".
func (l Language) Number(decimal string) string {
	n, err := currency.NewAmount(decimal, anyCurrency)
	if err != nil {
		return decimal
	}
	return l.number.Format(n)
}

// Percent formats a rate, such as "8.25%".
func (l Language) Percent(r money.Rate) string { return l.Number(r.String()) + l.percent + "%" }

// Date formats a day.
func (l Language) Date(d civil.Date) string {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Format(l.date)
}

// Days formats one or two days.
func (l Language) Days(d domain.Days) string {
	if d.First == d.Last {
		return l.Date(d.First)
	}
	return unbroken(l.Date(d.First)) + " – " + unbroken(l.Date(d.Last))
}

// day formats the date of an instant in a zone.
func (l Language) day(t time.Time, zone *time.Location) string {
	return l.Date(civil.DateOf(t.In(zone)))
}

// until formats the last whole day before an instant at midnight of a zone, or else its day, time and zone.
func (l Language) until(t time.Time, zone *time.Location) string {
	date := civil.DateOf(t.In(zone))
	if first, ok := date.Start(zone); ok && first.Equal(t) {
		return l.Date(date.AddDays(-1))
	}
	return unbroken(l.Date(date)) + " " + unbroken(t.In(zone).Format(l.clock))
}

// unbroken returns a text that stays on one line.
func unbroken(text string) string { return strings.ReplaceAll(text, " ", nbsp) }
