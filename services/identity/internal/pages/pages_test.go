package pages

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/domain"
)

func texts(t *testing.T, lang string) map[string]string {
	t.Helper()
	raw, err := locales.ReadFile("locales/" + lang + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

var placeholder = regexp.MustCompile(`{{\.\w+}}`)

// TestTextsOfAllLanguages checks that each language has each text, with the same placeholders, and that each text is used.
func TestTextsOfAllLanguages(t *testing.T) {
	t.Parallel()
	english := texts(t, "en")
	w, err := NewMessages()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range w.Languages() {
		own := texts(t, l)
		for id, text := range english {
			want, got := placeholder.FindAllString(text, -1), placeholder.FindAllString(own[id], -1)
			slices.Sort(want)
			slices.Sort(got)
			if own[id] == "" || !slices.Equal(want, got) || strings.HasSuffix(text, ".") && !strings.HasSuffix(own[id], ".") {
				t.Errorf("%s: %s: %q", l, id, own[id])
			}
		}
		if len(own) != len(english) {
			t.Errorf("%s has %d texts, English %d", l, len(own), len(english))
		}
	}
	used := map[string]bool{}
	for _, rule := range []domain.PasswordError{domain.PasswordLength, domain.PasswordCommon, domain.PasswordAddress} {
		used[string(rule)] = true
	}
	for _, scope := range proto.Scopes {
		used["scope_"+scope] = true
	}
	for _, role := range []string{"owner", "admin", "staff", "viewer"} {
		used["role_"+role] = true
	}
	call := regexp.MustCompile(`\.T\("([a-z_]+)"|v\.wrong\(err, "([a-z_]+)"\)|T\((wait)\)`)
	for _, pattern := range []string{"*.templ", "../api/oauth/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%v: %v", files, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				used[m[1]+m[2]+m[3]] = true
			}
		}
	}
	for id := range used {
		if english[id] == "" && !slices.Contains([]string{"role_", "scope_", "mode_"}, id) {
			t.Errorf("%q has no text", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(english)) {
		if !used[id] {
			t.Errorf("%q is used nowhere", id)
		}
	}
}

// TestTheLanguageOfABrowser checks that the language is the best match for the browser's request, otherwise English.
func TestTheLanguageOfABrowser(t *testing.T) {
	t.Parallel()
	w, err := NewMessages()
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]string{
		"": "en", "de": "de", "de-AT,de;q=0.9": "de", "es-MX": "es", "fr;q=0.5,de;q=0.6": "de", "pt-BR,pt;q=0.9": "en", "nonsense;;;": "en", strings.Repeat("x,", 5000): "en",
	} {
		if got := w.For("", accept); got.Lang != want {
			t.Errorf("%.20q: %s, want %s", accept, got.Lang, want)
		}
	}
	if got := w.For("", "de").T("wait", "Seconds", 3); got != "Zu viele fehlgeschlagene Versuche. Versuchen Sie es in 3 Sekunden noch einmal." {
		t.Error(got)
	}
	if got := w.For("", "fr").T("consent", "App", "<b>"); got != "<b> demande un accès" { // the page escapes it
		t.Error(got)
	}
}
