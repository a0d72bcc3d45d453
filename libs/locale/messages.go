// Package locale contains the texts of pages in several languages: JSON files that translators edit, one for each language, in
// go-i18n format.
package locale

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

// Messages contains the texts of all languages. It is immutable and safe for concurrent use.
type Messages struct {
	languages []language.Tag
	plain     map[string]map[string]string // by language and id: the texts without placeholders, because go-i18n finds them more slowly
	bundle    *i18n.Bundle
	matcher   language.Matcher
}

// New reads all locales/<language>.json from files, such as locales/de.json. To add a language, add a file. first is the default
// and comes first in the list of languages. The others follow in the order of their file names.
func New(files fs.FS, first language.Tag) (*Messages, error) {
	m := &Messages{languages: []language.Tag{first}, plain: map[string]map[string]string{}, bundle: i18n.NewBundle(first)}
	m.bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	names, err := fs.Glob(files, "locales/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		l, err := language.Parse(strings.TrimSuffix(path.Base(name), ".json"))
		if err != nil {
			return nil, fmt.Errorf("%s: the name is no language: %w", name, err)
		}
		loaded, err := m.bundle.LoadMessageFileFS(files, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		own := map[string]string{}
		for _, message := range loaded.Messages {
			if message.One == "" && !strings.Contains(message.Other, "{{") {
				own[message.ID] = message.Other
			}
		}
		m.plain[l.String()] = own
		if l != first {
			m.languages = append(m.languages, l)
		}
	}
	if len(m.languages) > len(names) {
		return nil, fmt.Errorf("there is no locales/%s.json", first)
	}
	m.matcher = language.NewMatcher(m.languages)
	return m, nil
}

// Languages returns the BCP 47 tags of the languages, starting with the default.
func (m *Messages) Languages() []string {
	out := make([]string, len(m.languages))
	for i, l := range m.languages {
		out[i] = l.String()
	}
	return out
}

// For selects the language: requested, a BCP 47 tag, if it is available, otherwise the best match for the value of Accept-Language.
func (m *Messages) For(requested, accept string) Text {
	for _, l := range m.languages {
		if l.String() == requested {
			return m.in(l)
		}
	}
	tags, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		tags = nil
	}
	_, i, _ := m.matcher.Match(tags...)
	return m.in(m.languages[i])
}

func (m *Messages) in(l language.Tag) Text {
	return Text{Lang: l.String(), messages: m, plain: m.plain[l.String()], localizer: i18n.NewLocalizer(m.bundle, l.String())}
}

// Text returns texts in one language.
type Text struct {
	Lang      string // BCP 47
	messages  *Messages
	plain     map[string]string
	localizer *i18n.Localizer
}

// Languages returns the texts of each language, starting with the default, for a language selector.
func (t Text) Languages() []Text {
	out := make([]Text, len(t.messages.languages))
	for i, l := range t.messages.languages {
		out[i] = t.messages.in(l)
	}
	return out
}

// T returns the text with the given id. pairs are the names and values of its placeholders. The value of Count selects the plural
// form. If the id has no text, T returns the id.
func (t Text) T(id string, pairs ...any) string {
	out, ok := t.Find(id, pairs...)
	if !ok {
		return id
	}
	return out
}

// Find is T, but also reports whether the id has a text.
func (t Text) Find(id string, pairs ...any) (string, bool) {
	if text, ok := t.plain[id]; ok {
		return text, true
	}
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
