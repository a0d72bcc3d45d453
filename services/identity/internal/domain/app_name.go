package domain

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"holdfast.dev/libs/apperr"
)

// MaxAppName is the maximum length of an app's name, in characters.
const MaxAppName = 60

// platformName is the name of the platform in the form of letters. Only the platform's own app can have it in its name.
const platformName = "holdfast"

// CheckAppName returns a 422 if an app cannot have the name.
func CheckAppName(name string) error {
	switch {
	case !isLine(name, 1, MaxAppName):
		return apperr.Field("name", "Must be one visible line of 1 to %d characters.", MaxAppName)
	case NamesPlatform(name):
		return apperr.Field("name", "Must not contain the name of the platform, Holdfast.")
	}
	return nil
}

// NamesPlatform reports whether a person would read the name of the platform in an app's name: case, accents, spaces, punctuation and
// look-alike letters do not count.
func NamesPlatform(name string) bool { return strings.Contains(letters(name), platformName) }

// lookAlikes are letters and digits that people take for one of the platform's name.
var lookAlikes = strings.NewReplacer(
	"0", "o", "о", "o", "ο", "o", "օ", "o", "1", "l", "|", "l", "і", "l", "ӏ", "l", "ι", "l", "i", "l", "һ", "h", "հ", "h", "ԁ", "d",
	"а", "a", "α", "a", "4", "a", "@", "a", "ѕ", "s", "5", "s", "$", "s", "т", "t", "τ", "t", "7", "t", "н", "h", "ƒ", "f", "ſ", "s",
)

// letters returns the letters and digits of a text in lower case, without accents and with look-alike letters replaced.
func letters(text string) string {
	plain := lookAlikes.Replace(strings.ToLower(norm.NFKD.String(text)))
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, plain)
}
