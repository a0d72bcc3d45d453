// Package web is the browser layer of the services that have pages: the site's cookies, forms that only its own pages can send,
// the headers of a response to a browser, and the choice of the language.
package web

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// SessionCookie is the name of the cookie with the token of a browser's session. See Site.CookieName.
const SessionCookie = "session"

// cookieLifetime is how long a browser stores a cookie from Site.Remember.
const cookieLifetime = 365 * 24 * time.Hour

// Site is the address at which browsers reach the pages of a service. It is immutable and safe for concurrent use.
type Site struct {
	Secure bool // browsers connect over https

	referrer string
	crossing *http.CrossOriginProtection
}

// NewSite returns the site at an address such as https://example.com. It accepts forms from pages of that origin, although the
// gateway calls the service under another host. referrer is the Referrer-Policy of all responses.
func NewSite(address, referrer string) (*Site, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("web: address: %w", err)
	}
	s := &Site{Secure: u.Scheme == "https", referrer: referrer, crossing: http.NewCrossOriginProtection()}
	if err := s.crossing.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
		return nil, fmt.Errorf("web: address: %w", err)
	}
	return s, nil
}

// CookieName returns the name of a cookie of the whole site. Over https the name has a prefix that makes browsers accept the cookie
// only from this host.
func (s *Site) CookieName(name string) string {
	if s.Secure {
		return "__Host-holdfast_" + name
	}
	return "holdfast_" + name
}

// Cookie returns the value of a cookie, or "" if there is none.
func Cookie(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// Remember makes the browser store a cookie for a year. The browser sends the cookie with requests for path and all paths below it.
// Scripts cannot read it.
func (s *Site) Remember(w http.ResponseWriter, name, value, path string) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the address is https
		Name: name, Value: value, Path: path, MaxAge: int(cookieLifetime.Seconds()), HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteLaxMode,
	})
}
