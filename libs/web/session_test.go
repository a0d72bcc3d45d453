package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"holdfast.dev/libs/web"
)

// site returns the site at an address, with a Referrer-Policy that is no browser's default.
func site(t *testing.T, address string) *web.Site {
	t.Helper()
	s, err := web.NewSite(address, "no-referrer")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSiteRefuses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "book.test", "https://book.test:port", "https://"} {
		if _, err := web.NewSite(address, "no-referrer"); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}

// Over https, browsers accept the cookie of the whole site only from its host, and send no cookie over a plain connection.
func TestCookies(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct {
		name   string
		secure bool
	}{
		"https://book.test":     {"__Host-holdfast_session", true},
		"http://localhost:8080": {"holdfast_session", false},
	} {
		s := site(t, address)
		if got := s.CookieName(web.SessionCookie); got != want.name {
			t.Errorf("%s: the cookie is %s, want %s", address, got, want.name)
		}
		w := httptest.NewRecorder()
		s.Remember(w, "holdfast_theme", "dark", "/admin")
		set := w.Result().Cookies()
		if len(set) != 1 || set[0].Secure != want.secure || !set[0].HttpOnly || set[0].SameSite != http.SameSiteLaxMode || set[0].Path != "/admin" || set[0].MaxAge != 365*24*3600 {
			t.Fatalf("%s: %v", address, set)
		}
		r := httptest.NewRequest(http.MethodGet, "/admin", nil)
		r.AddCookie(set[0])
		if got, none := web.Cookie(r, "holdfast_theme"), web.Cookie(r, "holdfast_style"); got != "dark" || none != "" {
			t.Errorf("%s: read %q, and %q for a cookie that is not there", address, got, none)
		}
	}
}
