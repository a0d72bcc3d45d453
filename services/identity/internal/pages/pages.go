// Package pages holds the pages of people who sign in: templ components, their style and their words in four languages. Pure: no I/O.
package pages

import (
	"embed"

	"golang.org/x/text/language"

	"holdfast.dev/libs/words"
)

//go:embed locales/*.json
var locales embed.FS

//go:embed style.css
var style []byte

// Style is the style sheet of all pages.
func Style() []byte { return style }

// Languages are those that the pages are written in; the first is the default.
var Languages = []language.Tag{language.English, language.German, language.Spanish, language.French}

// NewWords reads the embedded texts.
func NewWords() (*words.Words, error) { return words.New(locales, Languages...) }

// Text writes texts in one language.
type Text = words.Text
