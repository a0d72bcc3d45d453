package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/pages"
	"holdfast.dev/services/identity/internal/store"
)

const (
	browserDigits = 26
	formLifetime  = time.Hour
	maxAgent      = 200
)

// pageRequest is one request of a person's browser.
type pageRequest struct {
	s *Server
	c *gin.Context
	w http.ResponseWriter
	r *http.Request
	pages.Text

	browser string     // the random text in the browser's own cookie
	form    url.Values // the form of a POST
	back    string     // an additional target of this page's forms: the origin of an app's redirect URI
}

// pageHandler runs h with the browser's session, which is written before the response begins.
func (s *Server) pageHandler(h func(v *pageRequest) error) httpx.Handler {
	return func(c *gin.Context) (err error) {
		r := c.Request
		known := &browserOf{address: r.Header.Get("X-Forwarded-For"), agent: r.UserAgent()[:min(len(r.UserAgent()), maxAgent)], found: map[string]*store.StoredSession{}}
		r = r.WithContext(context.WithValue(context.WithValue(r.Context(), browserKey{}, known), exchangeKey{}, &exchange{}))
		s.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v := &pageRequest{s: s, c: c, w: w, r: r, Text: web.Text(r, s.messages)}
			if err := v.serve(h); err != nil { //nolint:contextcheck // a pageRequest has its request, and that the context
				v.broken(err) //nolint:contextcheck // as above
			}
		})).ServeHTTP(c.Writer, r)
		return nil
	}
}

// serve reads the browser's cookie and the form, and runs h.
func (v *pageRequest) serve(h func(v *pageRequest) error) error {
	name := v.s.site.CookieName("browser")
	if v.browser = web.Cookie(v.r, name); len(v.browser) != browserDigits {
		v.browser = apikey.Random(browserDigits)
		v.s.site.Remember(v.w, name, v.browser, "/")
	}
	if v.r.Method == http.MethodPost {
		var err error
		if v.form, err = v.s.site.ReadForm(v.w, v.r, maxForm); err != nil {
			status := http.StatusBadRequest
			if errors.Is(err, web.ErrCrossSite) {
				status = http.StatusForbidden
			}
			return v.show(status, pages.Message(v.frame(), v.T("error"), v.T("stale"), ""))
		}
	}
	return h(v)
}

// query returns the query of the request, preceded by "?".
func (v *pageRequest) query() string {
	if v.r.URL.RawQuery == "" {
		return ""
	}
	return "?" + v.r.URL.RawQuery
}

// frame returns the surrounding parts of every page, with a form token.
func (v *pageRequest) frame() pages.Frame {
	return pages.Frame{Text: v.Text, Form: v.formKey().Token(v.s.Now().Add(formLifetime)), Query: v.query()}
}

// formKey binds a form to the browser, its session, and its request.
func (v *pageRequest) formKey() web.FormKey {
	return web.FormKey{Secret: v.browser + " " + v.s.sessions.Token(v.r.Context()), About: v.r.URL.Path + "\x00" + v.r.URL.RawQuery}
}

// validForm reports whether the submitted form was shown to this browser for this request.
func (v *pageRequest) validForm() bool { return v.formKey().Valid(v.form.Get("form"), v.s.Now()) }

// show responds with a page.
func (v *pageRequest) show(status int, page templ.Component) error {
	return v.s.site.Show(v.w, v.r, web.Page{Status: status, Lang: v.Lang, Policy: web.Policy{Form: v.back}, Body: page})
}

// redirect redirects the browser.
func (v *pageRequest) redirect(to string) error {
	v.s.site.Redirect(v.w, to)
	return nil
}

// broken responds with an error that the request did not cause.
func (v *pageRequest) broken(err error) {
	obs.Add(v.r.Context(), slog.String("error", err.Error()))
	v.w.Header().Set("Retry-After", "1")
	_ = v.show(http.StatusServiceUnavailable, pages.Message(v.frame(), v.T("error"), v.T("error_ours"), ""))
}

// requestHash returns a hash of the authorization request.
func (v *pageRequest) requestHash() string {
	sum := sha256.Sum256([]byte(v.r.URL.RawQuery))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// operator returns the signed-in operator, or nil if there is none.
func (v *pageRequest) operator() (*domain.Operator, error) {
	ctx := v.r.Context()
	id, err := ids.Parse[domain.OperatorPrefix](v.s.sessions.GetString(ctx, keyOperator))
	if err != nil {
		return nil, nil
	}
	o, err := v.s.App.Operator(ctx, id)
	if errors.Is(err, domain.ErrOperatorNotFound) {
		return nil, v.s.sessions.Destroy(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// wrong returns the text and the status for a sign-in error. It returns "" for any other error.
func (v *pageRequest) wrong(err error, otherwise string) (int, string) {
	var wait *app.WaitError
	switch {
	case errors.As(err, &wait):
		seconds := int(wait.After.Seconds()) + 1
		v.w.Header().Set("Retry-After", strconv.Itoa(seconds))
		return http.StatusTooManyRequests, v.T("wait", "Seconds", seconds)
	case errors.Is(err, app.ErrSignIn):
		return http.StatusUnprocessableEntity, v.T(otherwise)
	}
	return 0, ""
}

// network returns the client's network, for which attempts are counted: an IPv4 address, or the /64 of an IPv6 address.
func (v *pageRequest) network() string { return networkOf(v.r.Header.Get("X-Forwarded-For")) }

func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}
