package domain

import (
	"testing"

	"golang.org/x/text/language"
)

// TestPrintedAddress checks that the lines of an address are in the order of its country, and that its name is in the reader's language.
func TestPrintedAddress(t *testing.T) {
	t.Parallel()
	us := Address{Line1: new("1 Pier St"), City: new("Boston"), State: new("MA"), PostalCode: new("02110"), Country: new("US")}
	de := Address{Line1: new("Pier 4"), Line2: new("Hut"), City: new("Berlin"), PostalCode: new("10115"), Country: new("DE")}
	for _, tc := range []struct {
		address Address
		reader  string
		want    string
	}{
		{us, "", "1 Pier St\nBoston, MA 02110\nUnited States"},
		{us, "de-AT", "1 Pier St\nBoston, MA 02110\nVereinigte Staaten"},
		{de, "en", "Pier 4\nHut\n10115 Berlin\nGermany"},
		{de, "fr", "Pier 4\nHut\n10115 Berlin\nAllemagne"},
		{Address{Line1: new("1 High St"), City: new("Leeds"), PostalCode: new("LS1 4AP"), Country: new("GB")}, "fr", "1 High St\nLeeds\nLS1 4AP\nRoyaume-Uni"},
		{Address{City: new("Sydney"), State: new("NSW"), PostalCode: new("2000"), Country: new("AU")}, "en", "Sydney NSW 2000\nAustralia"},
		{Address{City: new("Mérida"), State: new("Yuc."), PostalCode: new("97000"), Country: new("MX")}, "de", "97000 Mérida, Yuc.\nMexiko"},
		{Address{City: new("Boston"), Country: new("US")}, "en", "Boston\nUnited States"},
		{Address{State: new("MA")}, "en", "MA"},
		{Address{}, "en", ""},
	} {
		if got := tc.address.Print(language.Make(tc.reader)); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
