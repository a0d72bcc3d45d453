package domain

import (
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// Address is a postal address. Nil means unknown. It is stored as JSON.
type Address struct {
	Line1      *string `json:"line1"`
	Line2      *string `json:"line2"`
	City       *string `json:"city"`
	State      *string `json:"state"`
	PostalCode *string `json:"postal_code"`
	Country    *string `json:"country"` // ISO 3166-1 alpha-2
}

// Print returns the lines of the address in the order of its country, which is named in the language of a reader.
func (a Address) Print(reader language.Tag) string {
	country := deref(a.Country)
	place := []string{strings.TrimSpace(deref(a.PostalCode) + " " + deref(a.City)), deref(a.State)}
	switch country {
	case "US", "CA":
		region := strings.TrimSpace(deref(a.State) + " " + deref(a.PostalCode))
		place = []string{strings.Join(slices.DeleteFunc([]string{deref(a.City), region}, empty), ", ")}
	case "AU":
		place = []string{strings.Join(slices.DeleteFunc([]string{deref(a.City), deref(a.State), deref(a.PostalCode)}, empty), " ")}
	case "MX":
		place = []string{strings.Join(slices.DeleteFunc([]string{place[0], deref(a.State)}, empty), ", ")}
	case "GB", "IE":
		place = []string{deref(a.City), deref(a.State), deref(a.PostalCode)}
	}
	lines := slices.Concat([]string{deref(a.Line1), deref(a.Line2)}, place, []string{countryName(country, reader)})
	return strings.Join(slices.DeleteFunc(lines, empty), "\n")
}

func empty(text string) bool { return text == "" }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// countryName returns the name of a country in a language, or its code if the language is not known.
func countryName(code string, reader language.Tag) string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return code
	}
	if namer := display.Regions(reader); namer != nil {
		return namer.Name(region)
	}
	return display.English.Regions().Name(region)
}

// isCountry reports whether a code is that of a country in ISO 3166-1.
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.String() == code
}
