package api

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// policy allows scripts and an inline style on the pages.
var policy = web.Policy{Scripts: true, Style: pages.StyleSource()}

// page is the page that responds to a request.
type page struct {
	*form

	nav     string // the selected entry of the navigation
	live    bool   // the page reloads when something changes
	notice  string
	problem string // the error, if the page is shown again
	status  int    // of the page, if it is shown again
}

// withSession runs h for a browser that has signed in. Any other browser is redirected to the sign-in and returns afterwards.
func (s *Server) withSession(h handler) httpx.Handler {
	return func(c *gin.Context) error {
		r := c.Request
		p := &page{form: &form{session: &session{
			Format: view.Format{Text: web.Text(r, s.Messages)}, server: s, app: s.App, c: c, r: r, token: web.Cookie(r, s.site.CookieName(web.SessionCookie)),
		}}}
		if err := p.serve(h); err != nil {
			p.fail(err)
		}
		return nil
	}
}

// inWorkspace is withSession for the pages of a tenant and a mode.
func (s *Server) inWorkspace(h handler) httpx.Handler {
	return s.withSession(func(p *page) error {
		w, err := p.auth.Enter(p.c.Param("tenant"), p.c.Param("mode"))
		if err != nil {
			return err
		}
		p.workspace, p.Zone = w, w.Zone()
		p.nav = strings.Split(strings.Trim(strings.TrimPrefix(p.c.FullPath(), workspaces), "/")+"/", "/")[0]
		who := w.Caller(httpx.RequestID(p.c))
		ctx := w.With(p.r.Context(), who.RequestID)
		obs.AddCaller(ctx, who)
		p.r = p.r.WithContext(ctx)
		if w.Tenant.Suspended {
			return showSuspended(p)
		}
		if w.Tenant.Closing && p.r.Method == http.MethodPost {
			return p.show(http.StatusForbidden, pages.Problem(p.frame(""), p.T("tenant_closing"), p.T("tenant_closing_read_only"), httpx.RequestID(p.c)))
		}
		return h(p)
	})
}

// showSuspended shows why the tenant is suspended. It replaces every page of the tenant, and ignores its forms.
func showSuspended(p *page) error {
	href, link := "/oauth/account", p.T("your_account")
	if _, ok := p.auth.FirstActive(); ok {
		href, link = "/admin", p.T("open_active_tenant")
	}
	reason := p.T("tenant_suspended_hint", "Name", p.workspace.Tenant.Name, "Reason", p.workspace.Tenant.StatusReason)
	return p.show(http.StatusForbidden, pages.Message(p.frame(""), p.T("tenant_suspended"), reason, href, link))
}

// serve finds the session and checks the form. It stores a form that has no session or comes from a page of an earlier session,
// and the operator returns to it.
func (p *page) serve(h handler) (err error) {
	var wrong error // of the form
	if p.r.Method == http.MethodPost {
		wrong = p.readForm()
	}
	if p.auth, err = p.signedIn(); err != nil {
		return err
	}
	if errors.Is(wrong, domain.ErrStaleForm) {
		if to, stored := p.saveDraft(); stored {
			return p.redirect(to)
		}
	}
	if wrong != nil {
		return wrong
	}
	if p.r.Method == http.MethodPost {
		p.once = p.postedOnce()
	}
	if p.restoreDraft() {
		p.notice = p.T("draft_kept")
	}
	return h(p)
}

// signIn redirects the browser to the sign-in, from which it returns to the page with the input.
func (p *page) signIn() error {
	to := p.address()
	if p.r.Method == http.MethodPost {
		to, _ = p.saveDraft()
	}
	return p.redirect("/oauth/sign-in?to=" + url.QueryEscape(to))
}

// requireRecentSignIn reports whether the operator entered their password recently. If not, it redirects them to the sign-in,
// which returns them to the page.
func (p *page) requireRecentSignIn() bool {
	if p.workspace.Recent(p.server.Now()) {
		return true
	}
	_ = p.signIn()
	return false
}

// frame returns the parts that surround the content of the page.
func (p *page) frame(problem string) pages.Frame {
	f := pages.Frame{
		Format: p.Format, Workspace: p.workspace, Form: p.proof() + "." + p.formKey().Token(time.Time{}), Draft: p.draft, Once: cmp.Or(p.once, newOnce(p.operator())), Page: p.nav, OtherMode: p.otherMode(), Address: p.address(), Theme: p.theme(),
		Notice: p.notice, Problem: cmp.Or(problem, p.problem), Nav: p.navigation(), First: p.needsStyle(),
	}
	if p.live {
		f.Live = p.workspace.Path("live")
	}
	if f.Notice == "" && f.Problem == "" {
		if text, ok := p.Find("done_" + p.r.URL.Query().Get("done")); ok {
			f.Notice = text
		}
	}
	if f.Problem == "" {
		if text, ok := p.Find("problem_" + p.r.URL.Query().Get("done")); ok {
			f.Problem = text
		}
	}
	return f
}

// otherMode returns the target of the switch between test and live: the page of the same name, or the first page if the other
// mode has none.
func (p *page) otherMode() string {
	if p.server.shown["/"+p.nav] == nil || slices.Contains(testPages, p.nav) || strings.Contains(p.nav, ".") {
		return "today"
	}
	return p.nav
}

// needsStyle reports whether the browser does not have the style of the pages yet, and records that it now has it. The browser
// loads the file after this page and caches it for the next one. A form always uses the file, because it can be nearly as large as
// the maximum size of a page.
func (p *page) needsStyle() bool {
	if !pages.Styled() || web.Cookie(p.r, "holdfast_style") == pages.Style() || p.r.URL.Query().Has("once") {
		return false
	}
	if p.r.Method == http.MethodGet {
		p.setCookie("style", pages.Style())
	}
	return true
}

// setCookie stores a value in a cookie of the browser for a year.
func (p *page) setCookie(name, value string) {
	p.server.site.Remember(p.c.Writer, "holdfast_"+name, value, "/admin")
}

func (p *page) theme() string {
	if t := web.Cookie(p.r, "holdfast_theme"); t == "light" || t == "dark" {
		return t
	}
	return ""
}

// navigation returns the pages that the operator's role can see.
func (p *page) navigation() []pages.NavGroup {
	if p.workspace.Session == nil {
		return nil
	}
	groups := []pages.NavGroup{{Items: []pages.NavItem{{Name: "today", Href: p.workspace.Path("today")}}}}
	if p.can("listBookings") && p.can("listUnits") {
		groups[0].Items = append(groups[0].Items, pages.NavItem{Name: "calendar", Href: p.workspace.Path("calendar")})
	}
	for _, name := range []string{domain.Business, domain.Catalogue, domain.Developers, domain.Settings} {
		g := pages.NavGroup{Name: name}
		for i := range domain.Resources {
			r := &domain.Resources[i]
			if r.Group == name && p.sees(r) {
				g.Items = append(g.Items, pages.NavItem{Name: r.Name, Href: p.workspace.Path(r.Name)})
			}
		}
		if name == domain.Settings {
			g.Items = append(g.Items, pages.NavItem{Name: "sessions", Href: "/oauth/account"})
		}
		for _, extra := range p.extraPages(name) {
			g.Items = append(g.Items, pages.NavItem{Name: extra, Href: p.workspace.Path(extra)})
		}
		if len(g.Items) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// testPages are the pages that exist only in test mode.
var testPages = []string{"clock"}

// extraPages returns the pages of a group that do not show a resource.
func (p *page) extraPages(group string) []string {
	var out []string
	add := func(name, operation string) {
		if operation == "" || p.can(operation) {
			out = append(out, name)
		}
	}
	switch group {
	case domain.Catalogue:
		add("availability", "listAvailability")
		add("prices", "listPackagePrices")
	case domain.Developers:
		add("quickstart", "")
		if !p.workspace.Live() {
			add("clock", "setTestClock")
		}
	case domain.Settings:
		add("business", "updateTenant")
		add("policy", "updateTenant")
		add("gateway", "connectGatewayAccount")
	}
	return out
}

// show responds with a page.
func (p *page) show(status int, component templ.Component) error {
	p.server.compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.server.site.Show(w, r, web.Page{Status: cmp.Or(p.status, status), Lang: p.Lang, Policy: policy, Body: component}); err != nil {
			obs.Add(r.Context(), slog.String("error", err.Error()))
		}
	})).ServeHTTP(p.c.Writer, p.r)
	return nil
}

// redirect redirects the browser.
func (p *page) redirect(to string) error {
	p.server.site.Redirect(p.c.Writer, to)
	return nil
}

// done redirects the browser to a page that confirms the action.
func (p *page) done(to, what string) error {
	return p.redirect(p.workspace.Path(to) + "?done=" + url.QueryEscape(what))
}

// fail responds with an error.
func (p *page) fail(err error) {
	if errors.Is(err, domain.ErrNoSession) {
		_ = p.signIn()
		return
	}
	e := apperr.As(err)
	obs.Add(p.r.Context(), slog.String("error", err.Error()))
	status := httpx.StatusOf(e.Kind)
	if status == http.StatusUnauthorized { // a service rejected the console; the gateway would treat 401 as a rejection by the console
		status = http.StatusInternalServerError
	}
	title, text := p.T("problem"), p.explain(e)
	if faults := p.faults(err); len(faults) > 0 {
		text = strings.Join(p.summary(faults), " ")
	}
	switch {
	case errors.Is(err, domain.ErrStaleForm):
		status, text = http.StatusBadRequest, p.T("error_stale_form")
	case errors.Is(err, web.ErrCrossSite):
		status, text = http.StatusForbidden, p.T("error_cross_site")
	}
	if p.workspace.Session == nil {
		_ = p.show(status, pages.Message(p.frame(""), title, text, "/admin", p.T("to_start")))
		return
	}
	_ = p.show(status, pages.Problem(p.frame(""), title, text, httpx.RequestID(p.c)))
}

// showForm shows a form with its values and its errors. Errors without an input are above the form.
func (p *page) showForm(status int, out pages.FormView, fields []forms.Field, form url.Values, faults []view.Fault, problem string) error {
	choices, err := p.choices(fields)
	if err != nil && p.posted == nil {
		return err
	}
	if err != nil { // the input matters more than the missing choices
		obs.Add(p.r.Context(), slog.String("error", err.Error()))
	}
	if p.draft != nil {
		form, p.once = p.draft, p.r.URL.Query().Get("once")
		if version, err := strconv.ParseInt(p.draft.Get("version"), 10, 64); err == nil {
			out.Version = version
		}
	}
	p.addSelected(choices, fields, form)
	out.Inputs = append(p.Inputs(fields, form, choices), out.Further...)
	p.nameCustomers(out.Inputs)
	out.Faults = p.summary(view.AssignFaults(out.Inputs, faults))
	return p.show(status, pages.Form(p.frame(problem), out))
}

// refused shows the form again, with the submitted values, if err rejects the input or leaves the outcome unknown.
func (p *page) refused(err error, out pages.FormView, fields []forms.Field) error {
	e := apperr.As(err)
	verdicts := []apperr.Kind{apperr.Invalid, apperr.Conflict, apperr.PreconditionFailed, apperr.NotFound, apperr.BadRequest, apperr.TooLarge}
	if !app.Unknown(err) && !slices.Contains(verdicts, e.Kind) {
		return err
	}
	problem := p.verdict(err)
	if e.Code == "slot_unavailable" {
		if left, ok := e.Extra["seats_available"]; ok {
			if problem = p.T("seats_unavailable", "Count", left); left == 0 {
				problem = p.T("no_seats")
			}
		}
		problem = strings.TrimSpace(problem + " " + p.clash())
	}
	return p.showForm(httpx.StatusOf(e.Kind), out, fields, domain.RowsFirst(fields, p.posted), p.faults(err), problem)
}

// showAgain shows the page of a form without inputs again, with its outcome. The page is that of its GET.
func (p *page) showAgain(err error, show handler) error {
	var e *apperr.Error
	if !app.Unknown(err) && (!errors.As(err, &e) || e.Kind == apperr.Forbidden) {
		return err
	}
	p.problem = strings.TrimSpace(p.verdict(err) + " " + strings.Join(p.summary(p.faults(err)), " "))
	p.status = httpx.StatusOf(apperr.As(err).Kind)
	if show(p) != nil {
		return err
	}
	return nil
}
