// Package pages holds the pages for sign-in and consent: templ components, their style, and their texts in four languages. Pure:
// no I/O.
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
