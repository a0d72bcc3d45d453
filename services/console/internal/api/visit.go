package api

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// policy allows the pages their scripts, and the style that a page may hold itself.
var policy = web.Policy{Scripts: true, Style: pages.StyleSource()}

// visit is one request of an operator's browser.
type visit struct {
	view.Format

	s       *Server
	c       *gin.Context
	r       *http.Request
	app     *app.App
	session *domain.Session
	w       domain.Workspace // zero outside one
	token   string           // of the session's cookie
	form    url.Values       // of a POST
	draft   url.Values       // what was entered into the page's form before; nil for nothing
	nav     string           // the entry of the navigation that is marked
	live    bool             // the page is fetched again when something changes
	notice  string
	once    string // the Idempotency-Key of the page's forms; "": each rendering has a new one
	problem string // what did not work, where the page is shown again
	status  int    // of the page, where it is shown again
}

// visits runs h for a browser that has signed in; any other is sent to the sign-in, and comes back.
func (s *Server) visits(h page) httpx.Handler {
	return func(c *gin.Context) error {
		r := c.Request
		v := &visit{s: s, c: c, r: r, app: s.App, token: web.Cookie(r, s.site.CookieName(web.SessionCookie))}
		v.Format = view.Format{Text: web.Text(r, s.Words)}
		if err := v.serve(h); err != nil {
			v.fail(err)
		}
		return nil
	}
}

// inWorkspace is visits for the pages of a tenant and a mode.
func (s *Server) inWorkspace(h page) httpx.Handler {
	return s.visits(func(v *visit) error {
		w, err := v.session.Enter(v.c.Param("tenant"), v.c.Param("mode"))
		if err != nil {
			return err
		}
		v.w, v.Zone = w, w.Zone()
		v.nav = strings.Split(strings.Trim(strings.TrimPrefix(v.c.FullPath(), workspaces), "/")+"/", "/")[0]
		who := w.Caller(httpx.RequestID(v.c))
		ctx := w.With(v.r.Context(), who.RequestID)
		obs.AddCaller(ctx, who)
		v.r = v.r.WithContext(ctx)
		return h(v)
	})
}

// serve finds the session and checks the form. A form that comes without a session, or from a page of an earlier session, is kept, and the
// operator comes back to it.
func (v *visit) serve(h page) (err error) {
	var wrong error // with the form
	if v.r.Method == http.MethodPost {
		wrong = v.readForm()
	}
	if v.session, err = v.signedIn(); err != nil {
		return err
	}
	if errors.Is(wrong, domain.ErrStaleForm) {
		if to, kept := v.keep(); kept {
			return v.redirect(to)
		}
	}
	if wrong != nil {
		return wrong
	}
	if v.r.Method == http.MethodPost {
		v.once = v.sentOnce()
	}
	v.restore()
	return h(v)
}

// signedIn returns the session of the browser's cookie, or domain.ErrNoSession.
func (v *visit) signedIn() (*domain.Session, error) {
	find := v.app.Services.Session
	switch {
	case v.token == "":
		return nil, domain.ErrNoSession
	case v.c.FullPath() == livePath: // a browser opens it again and again, whether somebody is there or not
		find = v.app.Services.WatchSession
	}
	return find(v.r.Context(), v.token, httpx.RequestID(v.c))
}

// signIn sends the browser to the sign-in, from which it comes back to the page with what was entered.
func (v *visit) signIn() error {
	to := v.address()
	if v.r.Method == http.MethodPost {
		to, _ = v.keep()
	}
	return v.redirect("/oauth/sign-in?to=" + url.QueryEscape(to))
}

// readForm refuses a form that another site has sent, and one without this session's token.
func (v *visit) readForm() (err error) {
	v.form, err = v.s.site.ReadForm(v.c.Writer, v.r, httpx.MaxBody)
	switch {
	case errors.Is(err, web.ErrFormTooLarge):
		return httpx.ErrTooLarge.WithCause(err)
	case errors.Is(err, web.ErrFormMalformed):
		return fmt.Errorf("%w: %w", domain.ErrStaleForm, err)
	case err != nil:
		return err
	}
	if form := v.form.Get("form"); !v.formKey().Genuine(form[strings.LastIndexByte(form, '.')+1:], v.s.Now()) {
		return domain.ErrStaleForm
	}
	if lang := v.form.Get("lang"); lang != "" { // numbers are read, and shown again, in the language in which they were entered
		v.Text = v.s.Words.For(lang, v.Lang)
	}
	return nil
}

// formKey binds forms to the session. Their tokens last as long: people fill in a form over hours.
func (v *visit) formKey() web.FormKey {
	return web.FormKey{Secret: v.token, About: "holdfast console form"}
}

// address is that of the page, with its query. A form that is sent to an address without a page has the nearest page above it.
func (v *visit) address() string {
	path, route, ok := v.r.URL.EscapedPath(), v.c.FullPath(), true
	for v.r.Method == http.MethodPost && v.s.shown[strings.TrimPrefix(route, workspaces)] == nil && route != "/admin" && route != "" {
		path, route, ok = path[:strings.LastIndexByte(path, '/')], route[:strings.LastIndexByte(route, '/')], false
	}
	if !ok || v.r.URL.RawQuery == "" {
		return path
	}
	return path + "?" + v.r.URL.RawQuery
}

// otherMode is the page to which the switch between test and live leads: the one of the same name, or the first page where the other mode has none.
func (v *visit) otherMode() string {
	if v.s.shown["/"+v.nav] == nil || slices.Contains(testPages, v.nav) || strings.Contains(v.nav, ".") {
		return "today"
	}
	return v.nav
}

// frame is what the page has around it.
func (v *visit) frame(problem string) pages.Frame {
	f := pages.Frame{
		Format: v.Format, Workspace: v.w, Form: v.proof() + "." + v.formKey().Token(time.Time{}), Draft: v.draft, Once: cmp.Or(v.once, newOnce(v.operator())), Page: v.nav, OtherMode: v.otherMode(), Address: v.address(), Theme: v.theme(),
		Notice: v.notice, Problem: cmp.Or(problem, v.problem), Nav: v.navigation(), First: v.first(),
	}
	if v.live {
		f.Live = v.w.Path("live")
	}
	if f.Notice == "" && f.Problem == "" {
		if text, ok := v.Find("done_" + v.r.URL.Query().Get("done")); ok {
			f.Notice = text
		}
	}
	if f.Problem == "" {
		if text, ok := v.Find("problem_" + v.r.URL.Query().Get("done")); ok {
			f.Problem = text
		}
	}
	return f
}

// proof is by what identity knows forms of the operator's pages, "" on a page without a session.
func (v *visit) proof() string {
	if v.session == nil {
		return ""
	}
	return v.session.FormProof
}

// operator is the id of who has signed in, "" on a page without a session.
func (v *visit) operator() string {
	if v.session == nil {
		return ""
	}
	return v.session.Operator.ID
}

// first reports whether the browser has not been given the style of the pages yet, and notes that it is now: it fetches the file after the
// page is shown, and has it for the next one. A form, which may be nearly as large as a page may be, always takes the file.
func (v *visit) first() bool {
	if !pages.Styled() || web.Cookie(v.r, "holdfast_style") == pages.Style() || v.r.URL.Query().Has("once") {
		return false
	}
	if v.r.Method == http.MethodGet {
		v.remember("style", pages.Style())
	}
	return true
}

// remember keeps a value in a cookie of the browser for a year.
func (v *visit) remember(name, value string) {
	v.s.site.Remember(v.c.Writer, "holdfast_"+name, value, "/admin")
}

func (v *visit) theme() string {
	if t := web.Cookie(v.r, "holdfast_theme"); t == "light" || t == "dark" {
		return t
	}
	return ""
}

// navigation are the pages that the operator's role may see.
func (v *visit) navigation() []pages.NavGroup {
	if v.w.Session == nil {
		return nil
	}
	groups := []pages.NavGroup{{Items: []pages.NavItem{{Name: "today", Href: v.w.Path("today")}}}}
	if v.may("listBookings") && v.may("listUnits") {
		groups[0].Items = append(groups[0].Items, pages.NavItem{Name: "calendar", Href: v.w.Path("calendar")})
	}
	for _, name := range []string{domain.Business, domain.Catalogue, domain.Developers, domain.Settings} {
		g := pages.NavGroup{Name: name}
		for i := range domain.Resources {
			r := &domain.Resources[i]
			if r.Group == name && v.sees(r) {
				g.Items = append(g.Items, pages.NavItem{Name: r.Name, Href: v.w.Path(r.Name)})
			}
		}
		if name == domain.Settings {
			g.Items = append(g.Items, pages.NavItem{Name: "sessions", Href: "/oauth/account"})
		}
		for _, extra := range v.extraPages(name) {
			g.Items = append(g.Items, pages.NavItem{Name: extra, Href: v.w.Path(extra)})
		}
		if len(g.Items) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// sees reports whether the role may see the list of a resource.
func (v *visit) sees(r *domain.Resource) bool {
	return v.may(r.List) && (r.Needs == "" || v.w.May(r.Needs))
}

// testPages are the pages that only test mode has.
var testPages = []string{"clock"}

// extraPages are the pages of a group that show no resource.
func (v *visit) extraPages(group string) []string {
	var out []string
	add := func(name, operation string) {
		if operation == "" || v.may(operation) {
			out = append(out, name)
		}
	}
	switch group {
	case domain.Catalogue:
		add("availability", "listAvailability")
		add("prices", "listPackagePrices")
	case domain.Developers:
		add("quickstart", "")
		if !v.w.Live() {
			add("clock", "setTestClock")
		}
	case domain.Settings:
		add("business", "updateTenant")
		add("policy", "updateTenant")
		add("gateway", "connectGatewayAccount")
	}
	return out
}

// show answers with a page.
func (v *visit) show(status int, component templ.Component) error {
	v.s.compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := v.s.site.Show(w, r, web.Page{Status: cmp.Or(v.status, status), Lang: v.Lang, Policy: policy, Body: component}); err != nil {
			obs.Add(r.Context(), slog.String("error", err.Error()))
		}
	})).ServeHTTP(v.c.Writer, v.r)
	return nil
}

// redirect sends the browser on.
func (v *visit) redirect(to string) error {
	v.s.site.Redirect(v.c.Writer, to)
	return nil
}

// done sends the browser to a page that says what has been done.
func (v *visit) done(page, what string) error {
	return v.redirect(v.w.Path(page) + "?done=" + url.QueryEscape(what))
}

// fail answers an error.
func (v *visit) fail(err error) {
	if errors.Is(err, domain.ErrNoSession) {
		_ = v.signIn()
		return
	}
	e := apperr.As(err)
	obs.Add(v.r.Context(), slog.String("error", err.Error()))
	status := httpx.StatusOf(e.Kind)
	if status == http.StatusUnauthorized { // a service has refused the console; to the gateway it would mean that the console refused the gateway
		status = http.StatusInternalServerError
	}
	title, text := v.T("problem"), v.explain(e)
	if faults := v.faults(err); len(faults) > 0 {
		text = strings.Join(v.summary(faults), " ")
	}
	switch {
	case errors.Is(err, domain.ErrStaleForm):
		status, text = http.StatusBadRequest, v.T("error_stale_form")
	case errors.Is(err, web.ErrCrossSite):
		status, text = http.StatusForbidden, v.T("error_cross_site")
	}
	if v.w.Session == nil {
		_ = v.show(status, pages.Message(v.frame(""), title, text, "/admin", v.T("to_start")))
		return
	}
	_ = v.show(status, pages.Problem(v.frame(""), title, text, httpx.RequestID(v.c)))
}

// explain says in the operator's language what an error means; one that has no words there is said as the API says it.
func (v *visit) explain(e *apperr.Error) string {
	if text, ok := v.Find("error_" + e.Code); ok {
		return text
	}
	return e.Message
}

// recent reports whether the operator has given its password recently; else it is asked for it, and comes back.
func (v *visit) recent() bool {
	if v.w.Recent(v.s.Now()) {
		return true
	}
	_ = v.signIn()
	return false
}
