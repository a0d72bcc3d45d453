// Package pages holds the pages of people who sign in: templ components, their style and their words in four languages. Pure: no I/O.
package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed locales/*.json
var locales embed.FS

//go:embed style.css
var style []byte

// Style is the style sheet of all pages.
func Style() []byte { return style }

// Languages are those that the pages are written in; the first is the default.
var Languages = []language.Tag{language.English, language.German, language.Spanish, language.French}

// Words has the texts of all languages.
type Words struct {
	bundle  *i18n.Bundle
	matcher language.Matcher
}

// NewWords reads the embedded texts.
func NewWords() (*Words, error) {
	w := &Words{bundle: i18n.NewBundle(Languages[0]), matcher: language.NewMatcher(Languages)}
	w.bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	files, err := fs.Glob(locales, "locales/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if _, err := w.bundle.LoadMessageFileFS(locales, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return w, nil
}

// Text writes texts in one language.
type Text struct {
	Lang      string // BCP 47
	localizer *i18n.Localizer
}

// For chooses the language by the value of Accept-Language.
func (w *Words) For(accept string) Text {
	wanted, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		wanted = nil
	}
	_, i, _ := w.matcher.Match(wanted...)
	lang := Languages[i].String()
	return Text{Lang: lang, localizer: i18n.NewLocalizer(w.bundle, lang)}
}

// T returns the text of that id, with the values of its placeholders in pairs of name and value. An id without a text is shown as it is;
// a test finds those.
func (t Text) T(id string, pairs ...any) string {
	data := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			data[name] = pairs[i+1]
		}
	}
	out, err := t.localizer.Localize(&i18n.LocalizeConfig{MessageID: id, TemplateData: data})
	if err != nil {
		return id
	}
	return out
}
