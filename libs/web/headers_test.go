package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"holdfast.dev/libs/web"
)

// page is a component that needs no templ.
type page string

func (p page) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(p))
	return err
}

// guarded are the headers that each response to a browser has.
var guarded = map[string]string{
	"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	"Vary": "Accept-Language, Cookie, Accept-Encoding",
}

func checkHeaders(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Get(name), value)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/oauth/sign-in", nil)
	if err := site(t, "https://book.test").Show(w, r, web.Page{Status: http.StatusForbidden, Lang: "de", Body: page("<p>Nein.</p>")}); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusForbidden || w.Body.String() != "<p>Nein.</p>" {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	checkHeaders(t, w.Header(), guarded)
	checkHeaders(t, w.Header(), map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Language": "de",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
	})
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	site(t, "https://book.test").Redirect(w, "/admin?a=b")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/admin?a=b" {
		t.Errorf("%d to %s", w.Code, w.Header().Get("Location"))
	}
	checkHeaders(t, w.Header(), guarded)
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]web.Policy{
		"default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' https://app.example": {Form: "https://app.example"},
		"default-src 'none'; style-src 'self' 'sha256-AA='; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'": {
			Scripts: true, Style: "'sha256-AA='",
		},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
