package words

import (
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"
)

var files = fstest.MapFS{
	"locales/en.json": {Data: []byte(`{"hello": "Hello {{.Name}}", "days": {"one": "{{.Count}} day", "other": "{{.Count}} days"}}`)},
	"locales/de.json": {Data: []byte(`{"hello": "Hallo {{.Name}}", "days": {"one": "{{.Count}} Tag", "other": "{{.Count}} Tage"}}`)},
}

func TestWords(t *testing.T) {
	t.Parallel()
	w, err := New(files, language.English, language.German)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ wanted, accept, want string }{
		{"", "", "Hello A"},
		{"", "de-AT,de;q=0.9", "Hallo A"},
		{"en", "de", "Hello A"},
		{"de", "en", "Hallo A"},
		{"../de", "", "Hello A"},
		{"", "nonsense;;;", "Hello A"},
	} {
		if got := w.For(c.wanted, c.accept).T("hello", "Name", "A"); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.wanted, c.accept, got, c.want)
		}
	}
	de := w.For("de", "")
	for n, want := range map[int]string{1: "1 Tag", 2: "2 Tage", 0: "0 Tage"} {
		if got := de.T("days", "Count", n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got, ok := de.Find("nothing"); ok || de.T("nothing") != "nothing" {
		t.Errorf("an id without a text: %q", got)
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	if _, err := New(files, language.English, language.French); err == nil {
		t.Error("a language without a file is taken")
	}
}
