// Package pages contains the pages for sign-in and consent: templ components, their style, and their texts in four languages. It is
// pure: no I/O.
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

// Style returns the style sheet of all pages.
func Style() []byte { return style }

// NewMessages reads the embedded texts. Each file is a language.
func NewMessages() (*locale.Messages, error) { return locale.New(locales, language.English) }

// Text returns texts in one language.
type Text = locale.Text
