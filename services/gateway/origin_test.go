package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/proto/internalapi"
)

const ownPage = "https://till.example"

// registered registers one origin with identity, and counts how often identity is called.
func registered(w *world) *atomic.Int64 {
	calls := new(atomic.Int64)
	w.identity.pages = func(out http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		fmt.Fprintf(out, `{"registered":%t}`, r.URL.Query().Get("origin") == ownPage)
	}
	return calls
}

// A preflight request is accepted for the origins that apps have registered, and only on the paths of the API and of the token
// endpoint. Any other OPTIONS request gets 405.
func TestPreflight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := registered(w)
	g := w.start(t)
	preflight := func(path string, edits ...edit) *response {
		t.Helper()
		a, err := g.raw("OPTIONS", path, "", edits...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	from := func(origin string) []edit {
		return []edit{header("Origin", origin), header("Access-Control-Request-Method", "POST"), header("Access-Control-Request-Headers", "authorization")}
	}
	for range 3 {
		for _, path := range []string{"/api/v1/customers", "/v1/bookings", "/oauth/token", "/oauth/revoke", "/oauth/par"} {
			a := preflight(path, from(ownPage)...)
			if a.StatusCode != 204 || a.Header.Get("Access-Control-Allow-Origin") != ownPage || !strings.Contains(a.Header.Get("Access-Control-Allow-Methods"), "POST") ||
				!strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Authorization, Content-Type") || a.Header.Get("Vary") != "Origin" || a.body != "" {
				t.Errorf("%s: %d %v %s", path, a.StatusCode, a.Header, a.body)
			}
			if credentials := a.Header.Get("Access-Control-Allow-Credentials"); credentials != "" {
				t.Errorf("%s: cookies are allowed: %s", path, credentials)
			}
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("identity was called %d times", n)
	}
	for path, edits := range map[string][]edit{
		"/api/v1/customers":                from("https://evil.example"),
		"/api/v1/units":                    from("null"),
		"/api/v1/services":                 from(ownPage + strings.Repeat("x", 300)),
		"/api/v1/bookings":                 {header("Origin", ownPage)},
		"/v1/customers":                    {header("Access-Control-Request-Method", "POST")},
		"/v1/bookings":                     nil,
		"/oauth/authorize":                 from(ownPage),
		"/oauth/sign-in":                   from(ownPage),
		"/oauth/account":                   from(ownPage),
		"/docs":                            from(ownPage),
		"/api/v1/calendars/bookings/x.ics": from(ownPage),
	} {
		a := preflight(path, edits...)
		if a.StatusCode == 404 && strings.Contains(path, "calendars") {
			continue // no such path
		}
		if a.StatusCode != 405 || a.code() != "method_not_allowed" || a.Header.Get("Allow") == "" || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v %s", path, a.StatusCode, a.Header, a.body)
		}
	}
	if a := preflight("/api/v1/nothing", from(ownPage)...); a.StatusCode != 404 {
		t.Errorf("no path: %d", a.StatusCode)
	}
}

// Scripts of an app's own pages can read the responses to its access tokens, including errors. Scripts of other pages cannot, and
// an API key allows none.
func TestResponsesToScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registered(w)
	g := w.start(t, func(c *Config) { c.RateLimit = 3 })
	token := w.identity.newToken(time.Now().Add(time.Hour))
	own := func(p *internalapi.Principal) { p.Origins = &[]string{"https://other.example", ownPage} }
	w.identity.change(token, own)
	open := func(status int, origin string, credential edit) bool {
		t.Helper()
		a := g.send(t, "GET", oneCu, "", credential, header("Origin", origin))
		if a.StatusCode != status || a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %s", origin, a.StatusCode, a.body)
		}
		allowed := a.Header.Get("Access-Control-Allow-Origin")
		if allowed != "" && (allowed != origin || !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "RateLimit-Remaining") || a.Header.Get("Vary") != "Origin") {
			t.Errorf("%s: %v", origin, a.Header)
		}
		return allowed != ""
	}
	if !open(200, ownPage, bearer(token)) || open(200, "https://evil.example", bearer(token)) || open(200, "https://till.example.evil.example", bearer(token)) {
		t.Error("the origin is not the app's own")
	}
	if !open(429, ownPage, bearer(token)) {
		t.Error("the app's page cannot read that it must wait")
	}
	key := w.identity.newKey()
	w.identity.change(key, own) // an API key never has origins
	if open(200, ownPage, bearer(key)) || open(401, ownPage, bearer("svc_at_nonsense")) {
		t.Error("a key, or no token, opens the API to scripts")
	}
	expired := w.identity.newToken(time.Now().Add(-time.Minute))
	w.identity.change(expired, own)
	if !open(401, ownPage, bearer(expired)) {
		t.Error("the app's page cannot read that its token has expired")
	}

	taken := w.identity.newToken(time.Now().Add(time.Hour))
	w.identity.change(taken, own)
	if !open(200, ownPage, bearer(taken)) {
		t.Error("the app's page cannot read")
	}
	w.identity.change(taken, func(p *internalapi.Principal) { p.Origins, p.Version = nil, 9 })
	if err := w.redis.Set(t.Context(), w.identity.holder(taken).StateKey(), "9", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if open(200, ownPage, bearer(taken)) {
		t.Error("an origin that the app has taken back may read")
	}
}

// Scripts of registered origins can read the gateway's own errors on the token endpoint: that they must wait, that identity is
// unavailable or slow, and that a method or a body is wrong. Others cannot.
func TestRefusalsOfTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		method  string
		body    string
		change  func(c *Config)
		respond func(out http.ResponseWriter, r *http.Request)
	}{
		"429": {status: 429, method: "POST", change: func(c *Config) { c.OAuthRateLimit = 1 }},
		"405": {status: 405, method: "GET"},
		"413": {status: 413, method: "POST", body: strings.Repeat("x", 1<<20+1)},
		"503": {status: 503, method: "POST", respond: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"504": {
			status: 504, method: "POST", change: func(c *Config) { c.UpstreamTimeout = time.Second },
			respond: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		},
	} {
		for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/par"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.identity.pages = func(out http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Query().Has("origin"):
						fmt.Fprintf(out, `{"registered":%t}`, r.URL.Query().Get("origin") == ownPage)
					case c.respond != nil:
						c.respond(out, r)
					}
				}
				var changes []func(*Config)
				if c.change != nil {
					changes = append(changes, c.change)
				}
				g := w.start(t, changes...)
				if name == "429" {
					if _, err := g.raw("POST", path, ""); err != nil {
						t.Fatal(err)
					}
				}
				for origin, readable := range map[string]bool{ownPage: true, "https://evil.example": false, "": false, "null": false} {
					a, err := g.raw(c.method, path, c.body, header("Origin", origin), header("Content-Type", "application/x-www-form-urlencoded"))
					if err != nil {
						t.Fatal(err)
					}
					allowed := a.Header.Get("Access-Control-Allow-Origin")
					if a.StatusCode != c.status || (allowed == origin && origin != "") != readable || !readable && allowed != "" || a.Header.Get("Vary") != "Origin" ||
						readable && !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "Retry-After") {
						t.Errorf("%q: %d %v %s", origin, a.StatusCode, a.Header, a.body)
					}
				}
			})
		}
	}
}

// While identity is unavailable, scripts of an origin that it allowed before can read the error.
func TestRefusalsWhileIdentityIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.identity.pages = func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Access-Control-Allow-Origin", ownPage)
	}
	g := w.start(t)
	request := func(origin string) *response {
		t.Helper()
		a, err := g.raw("POST", "/oauth/token", "", header("Origin", origin))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := request(ownPage); a.StatusCode != 200 || a.Header.Get("Access-Control-Allow-Origin") != ownPage {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	w.identity.pages = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	if a := request(ownPage); a.StatusCode != 503 || a.Header.Get("Access-Control-Allow-Origin") != ownPage {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if a := request("https://evil.example"); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}
