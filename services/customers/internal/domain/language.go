package domain

import (
	"slices"

	"golang.org/x/text/language"
)

// Languages are the languages of documents. Any other one is replaced.
var Languages = []string{"en", "de", "fr"}

// Language returns the language and the region of a document for a customer with a locale, or nil if it is unknown: those of the
// locale if documents have texts in its language, else those of the operator, else English outside of the US. A locale without a
// region has the operator's if both have the same language.
func (i Invoicing) Language(locale *string) language.Tag {
	own := i.ownLanguage()
	tag := language.Make(deref(locale))
	if _, confidence := tag.Region(); confidence != language.Exact && base(tag) == base(own) {
		tag = own
	}
	for _, candidate := range []language.Tag{tag, own} {
		if slices.Contains(Languages, base(candidate)) {
			return candidate
		}
	}
	return language.MustParse("en-001")
}

// ownLanguage returns the operator's language, or else the most likely one of its country, together with the country, such as de-DE.
func (i Invoicing) ownLanguage() language.Tag {
	if own := language.Make(i.Locale); i.Locale != "" {
		if _, confidence := own.Region(); confidence == language.Exact || i.Country == "" {
			return own
		}
		return language.Make(base(own) + "-" + i.Country)
	}
	tag, err := language.Parse("und-" + i.Country)
	if i.Country == "" || err != nil {
		return language.Und
	}
	return language.Make(base(tag) + "-" + i.Country)
}

// base returns the language of a tag, or "" for none.
func base(tag language.Tag) string {
	b, confidence := tag.Base()
	if confidence == language.No || tag == language.Und {
		return ""
	}
	return b.String()
}
