package web

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// Policy is a Content-Security-Policy. Without anything in it pages have their own site's styles and forms, load nothing else, and are
// shown in no frame.
type Policy struct {
	Scripts bool   // pages run the site's own scripts, which may call it, and show images of the site and of data: URLs
	Style   string // a further source of styles; "" for none
	Form    string // a further place to which forms may lead; "" for none
}

// String returns the value of the header.
func (p Policy) String() string {
	directives := []string{"default-src 'none'", source("style-src", p.Style)}
	if p.Scripts {
		directives = append(directives, "script-src 'self'", "img-src 'self' data:", "connect-src 'self'")
	}
	return strings.Join(append(directives, "base-uri 'none'", "frame-ancestors 'none'", source("form-action", p.Form)), "; ")
}

// source is a directive that allows the site and one more source.
func source(directive, more string) string { return strings.TrimSpace(directive + " 'self' " + more) }

// Guard sets what every response to a browser has: no frames (RFC 9700, section 4.16), no guessing of media types, and no copies
// of what it says.
func (s *Site) Guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", s.referrer)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Vary", "Accept-Language, Cookie, Accept-Encoding")
}

// Component is a page that can be written as HTML, such as one of templ.
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

// Redirect sends the browser on with 303: it sends no form's fields along (RFC 9700, section 4.12), and going back does not send the form
// again.
func (s *Site) Redirect(w http.ResponseWriter, to string) {
	s.Guard(w)
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
