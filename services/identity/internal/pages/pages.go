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

// NewWords reads the embedded texts: each file is a language.
func NewWords() (*words.Words, error) { return words.New(locales, language.English) }

// Text writes texts in one language.
type Text = words.Text
