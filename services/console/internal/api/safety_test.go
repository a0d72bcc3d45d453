package api_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/services/console/internal/pages"
)

// without are the forms that are submitted to an address without a page, and the page to which they lead.
var without = map[string]string{"POST /audit/verify": "/audit", "POST /bookings/:id/move": "/bookings/:id", "POST /views": "", "POST /views/:id/delete": "", "POST /business/logo": "/business"}

// TestWithoutASession checks that a browser without a session is redirected to the sign-in and returns to the page. Only identity
// is called.
func TestWithoutASession(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for name, in := range map[string]request{
		"no cookie":         {},
		"an unknown cookie": {Token: "nobody"},
		"the other cookie":  {Token: "owner", Cookie: "__Host-holdfast_session"},
	} {
		for _, route := range p.routes() {
			method, path, _ := strings.Cut(route, " ")
			in.Method, in.Path = method, address("alpha", "test", path)
			want := in.Path
			if method == http.MethodGet {
				in.Path += "?status=new&q=a%26b"
				want = in.Path
			} else {
				in.Body = url.Values{"form": {"x"}}.Encode()
				if other, ok := without[route]; ok {
					want = address("alpha", "test", other)
				}
			}
			w := p.send(in)
			to, err := url.Parse(w.Header().Get("Location"))
			if err != nil || w.Code != http.StatusSeeOther || to.Path != "/oauth/sign-in" || to.Host != "" || to.Query().Get("to") != want {
				t.Errorf("%s, %s: %d to %s, want to come back to %s", name, route, w.Code, w.Header().Get("Location"), want)
			}
			in.Body = ""
		}
	}
	if calls := p.recordedCalls(); len(calls) != 0 {
		t.Errorf("%s is called", calls[0].ID)
	}
}

// TestAnEndedSession checks that a session that ended while a page was open is treated like no session.
func TestAnEndedSession(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := url.Values{"name": {"Boat"}, "form": {p.formToken("owner")}}
	p.mu.Lock()
	delete(p.sessions, sum("owner"))
	p.mu.Unlock()
	p.forget()
	w := p.post("owner", "/admin/alpha/test/services/new", form)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/oauth/sign-in?to=%2Fadmin%2Falpha%2Ftest%2Fservices%2Fnew" || len(p.recordedCalls()) != 0 {
		t.Errorf("%d to %s, %d calls", w.Code, w.Header().Get("Location"), len(p.recordedCalls()))
	}
}

// TestIdentityUnavailable checks that operators are not signed out while identity is unavailable: the page reports it.
func TestIdentityUnavailable(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*platform{"closed": newPlatform(t, options{away: "identity"}), "failing": newPlatform(t, options{})} {
		p.setResponse("lookupSession", refusal(http.StatusServiceUnavailable, "service_unavailable", nil))
		w := p.get("owner", "/admin/alpha/test/bookings")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Location") != "" || !strings.Contains(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

// refused holds the ways in which a form that the operator did not submit can arrive, and the responses.
var refused = map[string]struct {
	header map[string]string
	form   func(p *platform) string // its token; nil: the correct one
	status int
}{
	"no token":            {nil, func(*platform) string { return "" }, http.StatusBadRequest},
	"a wrong token":       {nil, func(*platform) string { return "AAAA" }, http.StatusBadRequest},
	"another's token":     {nil, func(p *platform) string { return p.formToken("admin") }, http.StatusBadRequest},
	"the session's token": {nil, func(*platform) string { return "owner" }, http.StatusBadRequest},
	"another site":        {map[string]string{"Sec-Fetch-Site": "cross-site"}, nil, http.StatusForbidden},
	"a sister site":       {map[string]string{"Sec-Fetch-Site": "same-site"}, nil, http.StatusForbidden},
	"another origin":      {map[string]string{"Origin": "https://evil.test"}, nil, http.StatusForbidden},
	"no origin":           {map[string]string{"Origin": "null"}, nil, http.StatusForbidden},
}

// TestForgedForms checks that a form from another site, or without this session's token, changes nothing, regardless of its
// content.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	right := p.formToken("owner")
	for _, r := range p.engine.Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		path := r.Path
		if rest, ok := strings.CutPrefix(path, workspaces); ok {
			path = address("alpha", "test", rest)
		}
		for name, tc := range refused {
			form := url.Values{"form": {right}, "version": {"1"}, "notes": {"changed"}, "name": {"changed"}, "unit_id": {"un_01k00000000000000000000002"}}
			if tc.form != nil {
				form.Set("form", tc.form(p))
			}
			p.forget()
			w := p.send(request{Method: http.MethodPost, Path: path, Token: "owner", Body: form.Encode(), Header: tc.header})
			if w.Code != tc.status || len(p.recordedCalls()) != 0 || len(w.Result().Cookies()) != 0 {
				t.Errorf("%s to %s: %d, %d calls", name, path, w.Code, len(p.recordedCalls()))
			}
		}
	}
}

// TestOwnForms checks that the forms of the console's own pages are accepted at its public address.
func TestOwnForms(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{publicURL: "https://book.test"})
	for _, header := range []map[string]string{nil, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "https://book.test"}} {
		in := request{Method: http.MethodGet, Path: "/admin/alpha/test/services/new", Token: "owner", Cookie: "__Host-holdfast_session"}
		form := formOf(t, parse(t, p.send(in).Body.String()), in.Path)
		form.Set("name", "Boat tour")
		in.Method, in.Body, in.Header = http.MethodPost, form.Encode(), header
		if w := p.send(in); w.Code != http.StatusSeeOther {
			t.Errorf("%v: %d", header, w.Code)
		}
	}
	if n := len(p.written()); n != 3 {
		t.Errorf("%d services created, want 3", n)
	}
}

// TestTokenInTheQueryIsIgnored checks that form values in the query of an address are ignored.
func TestTokenInTheQueryIsIgnored(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := "/admin/alpha/test/bookings/bk_01k00000000000000000000001/cancel?form=" + p.formToken("owner")
	p.forget()
	if w := p.send(request{Method: http.MethodPost, Path: path, Token: "owner"}); w.Code != http.StatusBadRequest || len(p.recordedCalls()) != 0 {
		t.Errorf("%d, %d calls", w.Code, len(p.recordedCalls()))
	}
}

// TestReadingWritesNothing checks that viewing a page changes nothing: no GET makes a call that writes.
func TestReadingWritesNothing(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.formToken("owner")
	p.forget()
	for _, r := range p.engine.Routes() {
		path := r.Path
		if rest, ok := strings.CutPrefix(path, workspaces); ok {
			path = address("alpha", "test", rest)
		}
		if r.Method != http.MethodGet || strings.HasSuffix(path, "/live") {
			continue
		}
		p.get("owner", path+"?q=Ada&name=x&version=1&form="+p.tokens["owner"])
	}
	for _, c := range p.written() {
		t.Errorf("%s %s is called", c.Method, c.ID)
	}
	if n := len(p.recordedCalls()); n < 100 {
		t.Errorf("only %d calls", n)
	}
}

// TestHeaders checks that every response forbids third-party scripts, frames, content type sniffing, and caching.
func TestHeaders(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.lax = true
	p.signIn("none")
	check := func(name string, w *httptest.ResponseRecorder) {
		t.Helper()
		h := w.Header()
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %d %v", name, w.Code, h)
		}
		policy := h.Get("Content-Security-Policy")
		html := strings.HasPrefix(h.Get("Content-Type"), "text/html")
		if html && (strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "base-uri 'none'")) {
			t.Errorf("%s: policy %q", name, policy)
		}
		if w.Body.Len() > 0 && !strings.Contains(h.Get("Content-Type"), "json") && !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: %q may be framed", name, h.Get("Content-Type"))
		}
		if strings.Contains(policy, "unsafe") && !strings.Contains(policy, "sandbox") {
			t.Errorf("%s: policy %q", name, policy)
		}
	}
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		if strings.HasSuffix(path, "/live") {
			continue
		}
		where := address("alpha", "test", path)
		for _, role := range []string{"owner", "viewer"} {
			check(role+" "+route, p.send(request{Method: method, Path: where, Token: role}))
		}
		check("outside "+route, p.send(request{Method: method, Path: where}))
		check("of another "+route, p.send(request{Method: method, Path: address("beta", "live", path), Token: "owner"}))
	}
	for _, path := range []string{"/admin", "/admin/", "/admin/x", "/admin/alpha/test/nothing", "/admin/alpha/test/bookings/bk_1/nothing"} {
		check(path, p.get("owner", path))
		check("no tenant "+path, p.get("none", path))
		check("outside "+path, p.send(request{Method: http.MethodGet, Path: path}))
	}
}

// TestAssets checks that browsers cache assets indefinitely, under names that change with their content, and that an unknown
// asset is not found.
func TestAssets(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	n := 0
	for name, a := range pages.Assets() {
		w := p.send(request{Method: http.MethodGet, Path: "/admin/-/assets/" + name})
		n++
		if w.Code != http.StatusOK || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Content-Type") != a.Type || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		if bad := p.send(request{Method: http.MethodGet, Path: "/admin/-/assets/x" + name}); bad.Code != http.StatusNotFound || strings.Contains(bad.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("x%s: %d", name, bad.Code)
		}
	}
	if n == 0 {
		t.Error("no asset, not even console.js")
	}
}

// TestFirstPageHoldsTheStyle checks that a browser's first page is displayed without a second round trip: it contains the style,
// allowed by the hash in its policy. Later pages load it from the browser's cache, until the style changes.
func TestFirstPageHoldsTheStyle(t *testing.T) {
	t.Parallel()
	if !pages.Styled() {
		t.Skip("the style was not built: run `make build` with Node installed")
	}
	p := newPlatform(t, options{})
	for _, tc := range []struct {
		cookie string
		inline bool
	}{{"", true}, {"style-of-yesterday.css", true}, {pages.Style(), false}} {
		cookies := map[string]string{"Cookie": "holdfast_session=owner; holdfast_style=" + tc.cookie}
		w := p.send(request{Method: http.MethodGet, Path: "/admin/alpha/test/search", Header: cookies})
		inline, blocking := 0, 0
		for n := range parse(t, w.Body.String()).Descendants() {
			switch {
			case n.Data == "style" && sourceOf(n) == pages.StyleSource() && strings.Contains(w.Header().Get("Content-Security-Policy"), "style-src 'self' "+pages.StyleSource()+";"):
				inline++
			case n.Data == "link" && attr(n, "rel") == "stylesheet" && attr(n, "media") == "":
				blocking++
			}
		}
		given := slices.ContainsFunc(w.Result().Cookies(), func(c *http.Cookie) bool { return c.Name == "holdfast_style" && c.Value == pages.Style() })
		if w.Code != http.StatusOK || (inline == 1) != tc.inline || (blocking == 0) != tc.inline || given != tc.inline {
			t.Errorf("cookie %q: %d, %d styles inside, %d to wait for, cookie set %t", tc.cookie, w.Code, inline, blocking, given)
		}
	}
}

// TestCookies checks that if browsers use https, cookies are sent only over https, and that the session cookie has the prefix
// that binds it to this host.
func TestCookies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		public, session string
		secure          bool
	}{{"https://book.test", "__Host-holdfast_session", true}, {"http://localhost:8080", "holdfast_session", false}} {
		p := newPlatform(t, options{publicURL: tc.public})
		page := p.send(request{Method: http.MethodGet, Path: "/admin/alpha/test/search", Token: "owner", Cookie: tc.session})
		if page.Code != http.StatusOK {
			t.Fatalf("%s: %d", tc.public, page.Code)
		}
		form := formOf(t, parse(t, page.Body.String()), "/admin/-/preferences")
		form.Set("theme", "dark")
		form.Set("language", "de; Domain=evil.test")
		w := p.send(request{Method: http.MethodPost, Path: "/admin/-/preferences", Token: "owner", Cookie: tc.session, Body: form.Encode()})
		cookies := w.Result().Cookies()
		if len(cookies) != 2 {
			t.Fatalf("%s: %v", tc.public, cookies)
		}
		for _, c := range cookies {
			if c.Secure != tc.secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/admin" || c.Domain != "" {
				t.Errorf("%s: %s", tc.public, c)
			}
		}
		if cookies[0].Value != "" || cookies[1].Value != "dark" {
			t.Errorf("%v", cookies)
		}
		other := map[string]string{"holdfast_session": "__Host-holdfast_session", "__Host-holdfast_session": "holdfast_session"}[tc.session]
		if w := p.send(request{Method: http.MethodGet, Path: "/admin", Token: "owner", Cookie: other}); !strings.HasPrefix(w.Header().Get("Location"), "/oauth/sign-in") {
			t.Errorf("%s takes the cookie %s", tc.public, other)
		}
	}
}

// returns maps the return address in a form to the address to which the browser is redirected; "" for the first page.
var returns = map[string]string{
	"/admin/alpha/live/bookings?status=new": "/admin/alpha/live/bookings?status=new",
	"/admin":                                "/admin",
	"//evil.test":                           "",
	"//evil.test/admin":                     "",
	`\\evil.test/admin`:                     "",
	`/\evil.test/admin`:                     "",
	"/admin/../x":                           "",
	"/admin/%2e%2e/x":                       "",
	"/admin//evil.test":                     "",
	"/administrator":                        "",
	"https://evil.test/admin":               "",
	"javascript:alert(1)":                   "",
	"/admin\r\nSet-Cookie: a=b":             "",
	"/admin/\x00":                           "",
	"/oauth/sign-out":                       "",
	"admin":                                 "",
	"":                                      "",
}

// TestFormsRedirectOnlyToTheConsole checks that a form redirects only to pages of the console.
func TestFormsRedirectOnlyToTheConsole(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for to, want := range returns {
		w := p.post("owner", "/admin/-/preferences", url.Values{"to": {to}})
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != cmp.Or(want, "/admin") {
			t.Errorf("%q leads to %q", to, got)
		}
		form := url.Values{"to": {to}, "version": {"1"}}
		w = p.post("owner", "/admin/alpha/test/bookings/bk_01k00000000000000000000001/move", form)
		got, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(w.Header().Get("Location"), "?done=moved"), "&done=moved"), "#")
		if w.Code != http.StatusSeeOther || got != cmp.Or(want, "/admin") {
			t.Errorf("after a move %q leads to %q", to, got)
		}
	}
}

// TestSearchLeadsToItsOwnPages checks that an id cannot make the search redirect elsewhere.
func TestSearchLeadsToItsOwnPages(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.lax = true
	for _, q := range []string{"bk_01k00000000000000000000001", "bk_/../../../../evil", "bk_//evil.test", `bk_\\evil`, "bk_?x=1", "bk_\r\nX: y"} {
		w := p.get("owner", "/admin/alpha/test/search?q="+url.QueryEscape(q))
		to := w.Header().Get("Location")
		if w.Code == http.StatusSeeOther && (!strings.HasPrefix(to, "/admin/alpha/test/bookings/bk_") || strings.Count(to, "/") != 5 || strings.ContainsAny(to, "\\?\r\n")) {
			t.Errorf("%q leads to %q", q, to)
		}
	}
}
