// Package view formats what the pages show: dates, amounts, and values in the operator's language, and inputs of forms. Pure.
package view

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/bojanz/currency"

	"holdfast.dev/libs/locale"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/console/internal/domain"
)

// Format formats values in a language and a time zone.
type Format struct {
	locale.Text

	Zone     *time.Location
	Resource string // the resource that the page shows; "" for other pages
}

// Date formats a day: 3 July 2026.
func (f Format) Date(t time.Time) string {
	return f.T("date", "Day", t.Day(), "Month", f.T("month_"+strconv.Itoa(int(t.Month()))), "Year", t.Year())
}

// ShortDate formats a day without its year: Fri 3 Jul.
func (f Format) ShortDate(t time.Time) string {
	return f.T("date_short", "Weekday", f.Weekday(t.Weekday()), "Day", t.Day(), "Month", f.T("mon_"+strconv.Itoa(int(t.Month()))))
}

// Weekday returns the short name of a weekday.
func (f Format) Weekday(d time.Weekday) string { return f.T("wd_" + strconv.Itoa(int(d))) }

// Month formats a month: July 2026.
func (f Format) Month(t time.Time) string {
	return f.T("month_"+strconv.Itoa(int(t.Month()))) + " " + strconv.Itoa(t.Year())
}

// DateTime formats an instant in the zone: 3 July 2026, 09:00.
func (f Format) DateTime(t time.Time) string {
	t = t.In(f.Zone)
	return f.Date(t) + ", " + t.Format("15:04")
}

// Day formats a date of the API, YYYY-MM-DD.
func (f Format) Day(s string) string {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return s
	}
	return f.Date(t)
}

// Money formats an amount with its currency, in the notation of the language.
func (f Format) Money(m domain.Money) string {
	places, err := money.Decimals(m.Currency)
	if err != nil {
		return strconv.FormatInt(m.Minor, 10)
	}
	a, err := currency.NewAmount(money.Amount{Minor: m.Minor, Currency: m.Currency}.Decimal(places), m.Currency)
	if err != nil {
		return strconv.FormatInt(m.Minor, 10) + " " + m.Currency
	}
	return currency.NewFormatter(currency.NewLocale(f.Lang)).Format(a)
}

// Plain formats an amount without its currency, and without decimals if they are zero.
func (f Format) Plain(m domain.Money) string {
	places, err := money.Decimals(m.Currency)
	if err != nil {
		places = 0
	}
	s := money.Amount{Minor: m.Minor, Currency: m.Currency}.Decimal(places)
	if whole, decimals, ok := strings.Cut(s, "."); ok && strings.Trim(decimals, "0") == "" {
		s = whole
	}
	return strings.ReplaceAll(s, ".", f.T("decimal_point"))
}

// Percent formats basis points in the notation of the language: 12.5%.
func (f Format) Percent(bps int64) string {
	s := money.Amount{Minor: bps}.Decimal(2)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	return f.T("percent", "Number", strings.ReplaceAll(s, ".", f.T("decimal_point")))
}

// Rate formats the rate of a tax, a decimal in percent.
func (f Format) Rate(rate string) string {
	return f.T("percent", "Number", strings.ReplaceAll(rate, ".", f.T("decimal_point")))
}

// Taxes formats taxes with their rates.
func (f Format) Taxes(list []domain.Object) string {
	parts := make([]string, len(list))
	for i, tax := range list {
		parts[i] = tax.Text("name") + " " + f.Rate(tax.Text("rate"))
	}
	return strings.Join(parts, ", ")
}

// Label returns the name of a field: the one for the page's resource, such as field_requests_method, or else the one for all. If the
// language has no name for it, Label returns its name in the API.
func (f Format) Label(field string) string { return cmp.Or(f.ofResource("field_", field), field) }

// hint returns the hint for a field, as Label does; "" if there is none.
func (f Format) hint(field string) string { return f.ofResource("hint_", field) }

// ofResource returns a text about a field: the one for the page's resource, or else the one for all.
func (f Format) ofResource(prefix, field string) string {
	for _, id := range []string{prefix + f.Resource + "_" + field, prefix + field} {
		if s, ok := f.Find(id); ok {
			return s
		}
	}
	return ""
}

// Actor returns the name of an actor that has no page: a service of the platform, or an unknown one.
func (f Format) Actor(id string) string {
	if strings.HasPrefix(id, "svc:") {
		return f.T("actor_system")
	}
	return id
}

// WordOf returns the value of a field as text. A value that means something else in this field than in others has its own text.
func (f Format) WordOf(field, value string) string {
	if s, ok := f.Find("word_" + field + "_" + value); ok {
		return s
	}
	return f.Word(value)
}

// Word returns a value of an enumeration as text: a status, a method. A value without a text is shown unchanged.
func (f Format) Word(value string) string {
	if s, ok := f.Find("word_" + value); ok {
		return s
	}
	return strings.ReplaceAll(value, "_", " ")
}
