package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/console/internal/domain"
)

// least is the lowest role that can use each route of a workspace. Higher roles can also use it, lower roles cannot.
var least = map[string]string{
	"GET ": "viewer", "GET /": "viewer",
	"GET /board":    "viewer",
	"GET /bookings": "viewer", "GET /bookings/:id": "viewer", "GET /bookings/:id/cancel": "staff", "POST /bookings/:id/cancel": "staff",
	"GET /bookings/:id/complete": "staff", "POST /bookings/:id/complete": "staff", "GET /bookings/:id/confirm": "staff",
	"POST /bookings/:id/confirm": "staff", "GET /bookings/:id/edit": "staff", "POST /bookings/:id/edit": "staff", "POST /bookings/:id/move": "staff",
	"GET /bookings/:id/no_show": "staff", "POST /bookings/:id/no_show": "staff", "GET /bookings/:id/reprice": "staff",
	"POST /bookings/:id/reprice": "staff", "GET /bookings/new": "staff", "POST /bookings/new": "staff",
	"GET /bookings.csv": "viewer",
	"GET /calendar":     "viewer",
	"GET /departure":    "viewer",
	"GET /customers":    "viewer", "GET /customers/:id": "viewer", "GET /customers/:id/edit": "staff", "POST /customers/:id/edit": "staff",
	"GET /customers/:id/erase": "staff", "POST /customers/:id/erase": "staff", "GET /customers/new": "staff", "POST /customers/new": "staff",
	"GET /customers/suggest": "viewer",
	"GET /customers.csv":     "viewer",
	"GET /endpoints":         "admin", "GET /endpoints/:id": "admin", "GET /endpoints/:id/delete": "admin", "POST /endpoints/:id/delete": "admin",
	"GET /endpoints/:id/disable": "admin", "POST /endpoints/:id/disable": "admin", "GET /endpoints/:id/edit": "admin",
	"POST /endpoints/:id/edit": "admin", "GET /endpoints/:id/enable": "admin", "POST /endpoints/:id/enable": "admin",
	"GET /events/:id/resend": "admin", "POST /events/:id/resend": "admin",
	"GET /endpoints/:id/replay": "admin", "POST /endpoints/:id/replay": "admin", "GET /endpoints/:id/rotate": "admin",
	"POST /endpoints/:id/rotate": "admin", "GET /endpoints/:id/test": "admin", "POST /endpoints/:id/test": "admin", "GET /endpoints/new": "admin",
	"POST /endpoints/new":                     "admin",
	"GET /endpoints/:id/deliveries/:delivery": "admin", "POST /endpoints/:id/deliveries/:delivery": "admin",
	"GET /invoices/:id/reverse": "staff", "POST /invoices/:id/reverse": "staff",
	"GET /events": "admin", "GET /events/:id": "admin",
	"GET /requests": "admin", "GET /requests/:id": "admin",
	"GET /feeds": "viewer", "GET /feeds/:id": "viewer", "GET /feeds/:id/delete": "staff", "POST /feeds/:id/delete": "staff", "GET /feeds/new": "staff",
	"POST /feeds/new": "staff",
	"GET /closures":   "viewer", "GET /closures/:id": "viewer", "GET /closures/:id/edit": "admin", "POST /closures/:id/edit": "admin",
	"GET /closures/new": "admin", "POST /closures/new": "admin", "GET /closures/:id/delete": "admin", "POST /closures/:id/delete": "admin",
	"GET /holiday-rules": "viewer", "GET /holiday-rules/:id": "viewer", "GET /holiday-rules/:id/edit": "admin", "POST /holiday-rules/:id/edit": "admin",
	"GET /holiday-rules/new": "admin", "POST /holiday-rules/new": "admin",
	"GET /invoices": "viewer", "GET /invoices/:id": "viewer", "GET /invoices/:id/edit": "staff", "POST /invoices/:id/edit": "staff",
	"GET /invoices/:id/open": "staff", "POST /invoices/:id/open": "staff", "GET /invoices/:id/pay": "staff", "POST /invoices/:id/pay": "staff",
	"GET /invoices/:id/pdf": "viewer", "GET /invoices/:id/uncollectible": "staff", "POST /invoices/:id/uncollectible": "staff",
	"GET /invoices/:id/delete": "staff", "POST /invoices/:id/delete": "staff", "GET /quotes/:id/delete": "staff", "POST /quotes/:id/delete": "staff",
	"GET /invoices/:id/void": "staff", "POST /invoices/:id/void": "staff", "GET /invoices/new": "staff", "POST /invoices/new": "staff",
	"GET /invoices.csv": "viewer", "GET /invoices/:id/credit": "staff", "POST /invoices/:id/credit": "staff",
	"GET /credit-notes": "viewer", "GET /credit-notes/:id": "viewer", "GET /credit-notes/:id/pdf": "viewer",
	"GET /keys": "admin", "GET /keys/:id": "admin", "GET /keys/new": "admin", "POST /keys/new": "admin", "GET /keys/:id/revoke": "admin", "POST /keys/:id/revoke": "admin",
	"GET /keys/:id/replace": "admin", "POST /keys/:id/replace": "admin",
	"GET /apps": "admin", "GET /apps/:id": "admin", "GET /apps/new": "admin", "POST /apps/new": "admin", "GET /apps/:id/edit": "admin", "POST /apps/:id/edit": "admin",
	"GET /apps/:id/delete": "admin", "POST /apps/:id/delete": "admin",
	"GET /grants": "admin", "GET /grants/:id": "admin", "GET /grants/:id/withdraw": "admin", "POST /grants/:id/withdraw": "admin",
	"GET /members": "admin", "GET /members/:id": "admin", "GET /members/new": "admin", "POST /members/new": "admin", "GET /members/:id/role": "admin",
	"POST /members/:id/role": "admin", "GET /members/:id/remove": "admin", "POST /members/:id/remove": "admin",
	"GET /audit": "admin", "POST /audit/verify": "admin",
	"GET /business": "admin", "POST /business": "admin", "GET /logo": "admin", "POST /business/logo": "admin", "GET /policy": "admin", "POST /policy": "admin",
	"GET /gateway": "admin", "POST /gateway": "admin", "GET /gateway/disconnect": "admin", "POST /gateway/disconnect": "admin",
	"GET /availability": "viewer", "GET /prices": "viewer", "GET /clock": "staff", "POST /clock": "staff",
	"POST /views": "viewer", "POST /views/:id/delete": "viewer",
	"GET /quickstart": "viewer", "POST /quickstart": "admin",
	"GET /leads": "viewer", "GET /leads/:id": "viewer", "GET /leads/:id/contacted": "staff", "POST /leads/:id/contacted": "staff",
	"GET /leads/:id/convert": "staff", "POST /leads/:id/convert": "staff", "GET /leads/:id/edit": "staff", "POST /leads/:id/edit": "staff",
	"GET /leads/:id/lose": "staff", "POST /leads/:id/lose": "staff", "GET /leads/:id/qualified": "staff", "POST /leads/:id/qualified": "staff",
	"GET /leads/new": "staff", "POST /leads/new": "staff",
	"GET /leads.csv":    "viewer",
	"GET /live":         "viewer",
	"GET /owed-refunds": "viewer", "GET /owed-refunds/:id": "viewer", "GET /owed-refunds/:id/retry": "admin", "POST /owed-refunds/:id/retry": "admin",
	"GET /owed-refunds/:id/close": "admin", "POST /owed-refunds/:id/close": "admin",
	"GET /packages": "viewer", "GET /packages/:id": "viewer", "GET /packages/:id/edit": "admin", "POST /packages/:id/edit": "admin",
	"GET /packages/new": "admin", "POST /packages/new": "admin",
	"GET /payments": "viewer", "GET /payments/:id": "viewer", "GET /payments/:id/cancel": "admin", "POST /payments/:id/cancel": "admin",
	"GET /payments/:id/capture": "admin", "POST /payments/:id/capture": "admin",
	"GET /quotes": "viewer", "GET /quotes/:id": "viewer", "GET /quotes/:id/accept": "staff", "POST /quotes/:id/accept": "staff",
	"GET /quotes/:id/cancel": "staff", "POST /quotes/:id/cancel": "staff", "GET /quotes/:id/decline": "staff", "POST /quotes/:id/decline": "staff",
	"GET /quotes/:id/edit": "staff", "POST /quotes/:id/edit": "staff", "GET /quotes/:id/pdf": "viewer", "GET /quotes/:id/send": "staff",
	"POST /quotes/:id/send": "staff", "GET /quotes/new": "staff", "POST /quotes/new": "staff",
	"GET /quotes.csv": "viewer",
	"GET /refunds":    "viewer", "GET /refunds/:id": "viewer", "GET /refunds/new": "admin", "POST /refunds/new": "admin",
	"GET /search":   "viewer",
	"GET /services": "viewer", "GET /services/:id": "viewer", "GET /services/:id/edit": "admin", "POST /services/:id/edit": "admin",
	"GET /services/new": "admin", "POST /services/new": "admin",
	"GET /today": "viewer",
	"GET /units": "viewer", "GET /units/:id": "viewer", "GET /units/:id/edit": "admin", "POST /units/:id/edit": "admin", "GET /units/new": "admin",
	"POST /units/new": "admin",
}

// outside are the routes outside workspaces. All signed-in operators can use them.
var outside = map[string]int{"GET /admin": http.StatusSeeOther, "POST /admin/-/preferences": http.StatusSeeOther, "GET /admin/-/assets/:name": http.StatusNotFound}

const workspaces = "/admin/:tenant/:mode"

// routes are the registered routes of workspaces as method and path.
func (p *platform) routes() []string {
	var out []string
	for _, r := range p.engine.Routes() {
		if rest, ok := strings.CutPrefix(r.Path, workspaces); ok {
			out = append(out, r.Method+" "+rest)
		}
	}
	slices.Sort(out)
	return out
}

// address returns a route's path in a workspace, with an id where the route has one.
func address(slug, mode, path string) string {
	if name := strings.SplitN(path, "/", 3); len(name) > 1 && strings.Contains(path, ":id") {
		path = strings.Replace(path, ":id", idOf(name[1]), 1)
	}
	path = strings.Replace(path, ":delivery", "whd_01k00000000000000000000001", 1)
	if strings.HasSuffix(path, "/reverse") {
		path += "?payment=pay_01k00000000000000000000001"
	}
	return "/admin/" + slug + "/" + mode + path
}

// idOf returns an id of a resource.
func idOf(name string) string {
	if r := domain.ResourceNamed(name); r != nil {
		return r.Prefix + "_01k00000000000000000000001"
	}
	if name == "views" {
		return "view" + oneID
	}
	return "xx_01k00000000000000000000001"
}

// changedForm returns the owner's form of a page, with its texts changed.
func (p *platform) changedForm(path string) url.Values {
	w := p.get("owner", path)
	if w.Code != http.StatusOK { // the form is on another page
		return url.Values{"version": {"1"}, "unit_id": {"un_01k00000000000000000000002"}, "list": {"bookings"}, "query": {"status=pending"}, "name": {"Open"}, "to": {"day"}, "remove": {"true"}}
	}
	form := formOf(p.t, parse(p.t, w.Body.String()), path)
	form.Del("form")
	for _, name := range []string{"notes", "description", "company", "name", "message"} {
		if form.Has(name) {
			form.Set(name, "changed")
		}
	}
	if strings.HasSuffix(path, "/credit") {
		form.Set("amount", "1")
	}
	if form.Has("hold_ttl_minutes") {
		form.Set("hold_ttl_minutes", "45")
	}
	return form
}

func TestEachRouteHasARowForRoles(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	known := p.routes()
	for _, route := range known {
		if !slices.Contains(roles, least[route]) {
			t.Errorf("%s is in no row: say which role it needs", route)
		}
	}
	for route := range least {
		if !slices.Contains(known, route) {
			t.Errorf("%s is a row without a route", route)
		}
	}
	for _, r := range p.engine.Routes() {
		if _, ok := outside[r.Method+" "+r.Path]; !ok && !strings.HasPrefix(r.Path, workspaces) {
			t.Errorf("%s %s is in no row", r.Method, r.Path)
		}
	}
}

// TestRoles checks that a role can see the pages and submit the forms that it is allowed to use. A forbidden form causes no write
// in a service.
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, role := range roles {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, options{})
			p.lax = true
			for _, route := range p.routes() {
				method, path, _ := strings.Cut(route, " ")
				allowed := slices.Index(roles, role) <= slices.Index(roles, least[route])
				where := address("alpha", "test", path)
				if method == http.MethodGet {
					p.reads(role, where, allowed)
				} else {
					p.sends(role, where, allowed)
				}
			}
		})
	}
}

func (p *platform) reads(role, path string, allowed bool) {
	p.t.Helper()
	want := http.StatusForbidden
	switch {
	case allowed && strings.TrimSuffix(path, "/") == "/admin/alpha/test":
		want = http.StatusSeeOther
	case allowed:
		want = http.StatusOK
	}
	if strings.HasSuffix(path, "/live") {
		return // TestLivePage
	}
	if w := p.get(role, path); w.Code != want {
		p.t.Errorf("%s reads %s: %d, want %d", role, path, w.Code, want)
	}
}

func (p *platform) sends(role, path string, allowed bool) {
	p.t.Helper()
	form := p.changedForm(path)
	p.forget()
	w := p.post(role, path, form)
	wrote := len(p.written()) > 0
	switch {
	case allowed && (!slices.Contains([]int{http.StatusOK, http.StatusSeeOther, http.StatusUnprocessableEntity}, w.Code) || !wrote):
		p.t.Errorf("%s sends %s: %d, written: %v", role, path, w.Code, wrote)
	case !allowed && (w.Code != http.StatusForbidden || wrote):
		p.t.Errorf("%s sends %s: %d, written: %v; want 403 and nothing", role, path, w.Code, wrote)
	}
}

// TestPagesOfferOnlyAllowedActions checks that a page offers a role only actions that it can use, and that each link leads to a
// page that the role can read.
func TestPagesOfferOnlyAllowedActions(t *testing.T) {
	t.Parallel()
	for _, role := range roles {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, options{})
			statuses := map[string]int{}
			for _, route := range p.routes() {
				method, path, _ := strings.Cut(route, " ")
				if method != http.MethodGet || slices.Index(roles, role) > slices.Index(roles, least[route]) || strings.HasSuffix(path, "/live") {
					continue
				}
				from := address("alpha", "test", path)
				for _, a := range all(parse(t, p.get(role, from).Body.String()), "a") {
					href, _, _ := strings.Cut(attr(a, "href"), "#")
					if !strings.HasPrefix(href, "/admin/alpha/test/") {
						continue
					}
					if statuses[href] == 0 {
						statuses[href] = p.get(role, href).Code
					}
					if statuses[href] != http.StatusOK {
						t.Errorf("%s: %s leads to %s: %d", role, from, href, statuses[href])
					}
				}
			}
			if len(statuses) < 50 {
				t.Errorf("only %d links: the pages have none", len(statuses))
			}
		})
	}
}

// TestEmptyPagesOfferOnlyAllowedActions checks that an empty workspace offers a role only resources that it can create.
func TestEmptyPagesOfferOnlyAllowedActions(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for _, op := range p.contract.Operations() {
		if strings.HasPrefix(op.ID, "list") {
			p.setResponse(op.ID, object(map[string]any{"data": []any{}, "has_more": false}))
		}
	}
	for _, role := range []string{"admin", "viewer"} {
		offered := 0
		for _, path := range []string{"today", "calendar", "board", "bookings", "customers", "leads", "quotes", "invoices", "services", "units", "packages", "holiday-rules", "refunds"} {
			for _, a := range all(parse(t, p.get(role, "/admin/alpha/test/"+path).Body.String()), "a") {
				if strings.HasSuffix(attr(a, "href"), "/new") {
					offered++
					if role == "viewer" {
						t.Errorf("%s offers %s", path, attr(a, "href"))
					}
				}
			}
		}
		if role == "admin" && offered < 15 {
			t.Errorf("the admin is offered %d forms", offered)
		}
	}
}

// TestARoleWithoutScopes checks that a role without any read scope sees only the first page.
func TestARoleWithoutScopes(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.signIn("nobody", tenant(ids.New[ids.TenantPrefix](), "gamma", "nobody"))
	p.forget()
	if w := p.get("nobody", "/admin/gamma/test/today"); w.Code != http.StatusOK {
		t.Errorf("today: %d", w.Code)
	}
	if w := p.get("nobody", "/admin/gamma/test/bookings"); w.Code != http.StatusForbidden {
		t.Errorf("bookings: %d", w.Code)
	}
	if calls := p.recordedCalls(); len(calls) != 0 {
		t.Errorf("%d calls without a scope", len(calls))
	}
}
