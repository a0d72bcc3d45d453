package web

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// Policy is a Content-Security-Policy. By default pages can use styles and forms of their own site, load nothing else, and cannot
// be shown in a frame.
type Policy struct {
	Scripts bool   // pages run the site's own scripts, which may call it, and show images of the site and of data: URLs
	Style   string // an additional source of styles; "" for none
	Form    string // an additional target of forms; "" for none
}

// String returns the value of the header.
func (p Policy) String() string {
	directives := []string{"default-src 'none'", source("style-src", p.Style)}
	if p.Scripts {
		directives = append(directives, "script-src 'self'", "img-src 'self' data:", "connect-src 'self'")
	}
	return strings.Join(append(directives, "base-uri 'none'", "frame-ancestors 'none'", source("form-action", p.Form)), "; ")
}

// source returns a directive that allows the site and one more source.
func source(directive, more string) string { return strings.TrimSpace(directive + " 'self' " + more) }

// Guard sets the headers of every response to a browser: no frames (RFC 9700, section 4.16), no guessing of media types, and no
// caching.
func (s *Site) Guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", s.referrer)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Vary", "Accept-Language, Cookie, Accept-Encoding")
}

// Component is a page that can be rendered as HTML, such as a templ component.
type Component interface {
	Render(ctx context.Context, w io.Writer) error
}

// Page is a page in one language.
type Page struct {
	Status int
	Lang   string // BCP 47
	Policy Policy
	Body   Component
}

// Show responds with a page.
func (s *Site) Show(w http.ResponseWriter, r *http.Request, p Page) error {
	s.Guard(w)
	h := w.Header()
	h.Set("Content-Security-Policy", p.Policy.String())
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.Lang)
	w.WriteHeader(p.Status)
	return p.Body.Render(r.Context(), w)
}

// Redirect redirects the browser with 303. The browser does not forward the form's fields (RFC 9700, section 4.12), and going back
// does not send the form again.
func (s *Site) Redirect(w http.ResponseWriter, to string) {
	s.Guard(w)
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
