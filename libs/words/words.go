// Package words holds the texts of pages in several languages: JSON files that translators edit, one for each language, in the form of
// go-i18n.
package words

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

// Words has the texts of all languages. It is immutable and safe for concurrent use.
type Words struct {
	languages []language.Tag
	bundle    *i18n.Bundle
	matcher   language.Matcher
}

// New reads locales/<language>.json of each language from files. The first language is the default.
func New(files fs.FS, languages ...language.Tag) (*Words, error) {
	w := &Words{languages: languages, bundle: i18n.NewBundle(languages[0]), matcher: language.NewMatcher(languages)}
	w.bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	for _, l := range languages {
		name := "locales/" + l.String() + ".json"
		if _, err := w.bundle.LoadMessageFileFS(files, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return w, nil
}

// For chooses the language: that of wanted, a BCP 47 tag, when it is one of the languages, else by the value of Accept-Language.
func (w *Words) For(wanted, accept string) Text {
	for _, l := range w.languages {
		if l.String() == wanted {
			return w.in(l)
		}
	}
	tags, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		tags = nil
	}
	_, i, _ := w.matcher.Match(tags...)
	return w.in(w.languages[i])
}

func (w *Words) in(l language.Tag) Text {
	return Text{Lang: l.String(), localizer: i18n.NewLocalizer(w.bundle, l.String())}
}

// Text writes texts in one language.
type Text struct {
	Lang      string // BCP 47
	localizer *i18n.Localizer
}

// T returns the text of that id, with the values of its placeholders in pairs of name and value. A value of the name Count chooses the
// plural form. An id without a text is shown as it is.
func (t Text) T(id string, pairs ...any) string {
	out, ok := t.Find(id, pairs...)
	if !ok {
		return id
	}
	return out
}

// Find is T, and reports whether the id has a text.
func (t Text) Find(id string, pairs ...any) (string, bool) {
	data := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			data[name] = pairs[i+1]
		}
	}
	config := &i18n.LocalizeConfig{MessageID: id, TemplateData: data}
	if n, ok := data["Count"]; ok {
		config.PluralCount = n
	}
	out, err := t.localizer.Localize(config)
	return out, err == nil
}
