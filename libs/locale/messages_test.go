package locale

import (
	"slices"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"
)

var files = fstest.MapFS{
	"locales/en.json": {Data: []byte(`{"hello": "Hello {{.Name}}", "days": {"one": "{{.Count}} day", "other": "{{.Count}} days"}, "yes": "Yes", "gulls": {"one": "a gull", "other": "gulls"}}`)},
	"locales/de.json": {Data: []byte(`{"hello": "Hallo {{.Name}}", "days": {"one": "{{.Count}} Tag", "other": "{{.Count}} Tage"}, "yes": "Ja"}`)},
}

func TestMessages(t *testing.T) {
	t.Parallel()
	m, err := New(files, language.English)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ requested, accept, want string }{
		{"", "", "Hello A"},
		{"", "de-AT,de;q=0.9", "Hallo A"},
		{"en", "de", "Hello A"},
		{"de", "en", "Hallo A"},
		{"../de", "", "Hello A"},
		{"", "nonsense;;;", "Hello A"},
	} {
		if got := m.For(c.requested, c.accept).T("hello", "Name", "A"); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.requested, c.accept, got, c.want)
		}
	}
	de := m.For("de", "")
	for n, want := range map[int]string{1: "1 Tag", 2: "2 Tage", 0: "0 Tage"} {
		if got := de.T("days", "Count", n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got, en := de.T("yes", "Count", 1), m.For("en", "").T("gulls", "Count", 1); got != "Ja" || en != "a gull" {
		t.Errorf("%q, %q", got, en)
	}
	if got, ok := de.Find("nothing"); ok || de.T("nothing") != "nothing" {
		t.Errorf("an id without a text: %q", got)
	}
}

// Each file is a language, starting with the default.
func TestLanguages(t *testing.T) {
	t.Parallel()
	m, err := New(files, language.German)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Languages(); !slices.Equal(got, []string{"de", "en"}) || m.For("", "").Lang != "de" {
		t.Errorf("%v, %s without a preference", got, m.For("", "").Lang)
	}
	var hello []string
	for _, l := range m.For("en", "").Languages() {
		hello = append(hello, l.Lang+" "+l.T("hello", "Name", "A"))
	}
	if !slices.Equal(hello, []string{"de Hallo A", "en Hello A"}) {
		t.Errorf("%q", hello)
	}
}

func TestWrongFiles(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]fstest.MapFS{
		"no file of the default": {"locales/de.json": files["locales/de.json"]},
		"no files":               {},
		"a name of no language":  {"locales/en.json": files["locales/en.json"], "locales/translations.json": files["locales/de.json"]},
		"no JSON":                {"locales/en.json": {Data: []byte("{")}},
	} {
		if _, err := New(with, language.English); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
