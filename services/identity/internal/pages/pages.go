// Package pages holds the pages for sign-in and consent: templ components, their style, and their texts in four languages. Pure:
// no I/O.
package pages

import (
	"embed"

	"golang.org/x/text/language"

	"holdfast.dev/libs/locale"
)

//go:embed locales/*.json
var locales embed.FS

//go:embed style.css
var style []byte

// Style is the style sheet of all pages.
func Style() []byte { return style }

// NewMessages reads the embedded texts: each file is a language.
func NewMessages() (*locale.Messages, error) { return locale.New(locales, language.English) }

// Text writes texts in one language.
type Text = locale.Text
