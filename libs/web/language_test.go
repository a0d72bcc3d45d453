package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"holdfast.dev/libs/locale"
	"holdfast.dev/libs/web"
)

// The language that a person has selected takes precedence over those that the browser requests.
func TestText(t *testing.T) {
	t.Parallel()
	texts, err := locale.New(fstest.MapFS{
		"locales/en.json": {Data: []byte(`{"hello": "Hello"}`)},
		"locales/de.json": {Data: []byte(`{"hello": "Hallo"}`)},
	}, language.English)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ cookie, accept, want string }{
		{"", "", "Hello"},
		{"", "de-AT, en;q=0.5", "Hallo"},
		{"en", "de", "Hello"},
		{"de", "en", "Hallo"},
		{"xx", "de", "Hallo"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/admin", nil)
		r.Header.Set("Accept-Language", tc.accept)
		if tc.cookie != "" {
			r.AddCookie(&http.Cookie{Name: web.LanguageCookie, Value: tc.cookie})
		}
		if got := web.Text(r, texts).T("hello"); got != tc.want {
			t.Errorf("cookie %q, Accept-Language %q: %s, want %s", tc.cookie, tc.accept, got, tc.want)
		}
	}
}
