package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"
)

const (
	customers = "/api/v1/customers"
	oneCu     = customers + "/cu_00000000000000000000000000"
	ada       = `{"first_name":"Ada","email":"a@example.com"}`
	bookings  = "/api/v1/bookings"
	events    = "/api/v1/events"
	endpoints = "/api/v1/webhook-endpoints"
	party     = `{"event_date":"2026-05-10","guest_count":2}`
)

// The request of each row has its own fault and all faults that are checked later, if one request can have them.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit = 1 })
	restrictedKey := func() string { return w.identity.newKey("read:units") }
	spent := w.identity.newKey("read:customers")
	g.send(t, "GET", oneCu, "", bearer(spent))
	revoked := restrictedKey()
	w.identity.change(revoked, func(p *internalapi.Principal) { p.Revoked = true })
	good := func() string { return w.identity.newKey() }
	badType := header("Content-Type", "text/plain")
	longKey := header("Idempotency-Key", strings.Repeat("é", 256))
	huge := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct {
		name, method, path, body string
		edits                    []edit
		status                   int
		code                     string
	}{
		{"no route", "POST", "/api/v1/nothing?api_key=x", "{", nil, 404, "not_found"},
		{"base alone", "GET", "/api/v1", "", nil, 404, "not_found"},
		{"outside", "GET", "/oauth/nothing", "", nil, 404, "not_found"},
		{"outside, no method", "GET", "/oauth/token", "", nil, 405, "method_not_allowed"},
		{"trailing slash", "GET", "/api/v1/customers/", "", nil, 404, "not_found"},
		{"no method", "PUT", customers + "?api_key=x", "{", nil, 405, "method_not_allowed"},
		{"options", "OPTIONS", customers, "", nil, 405, "method_not_allowed"},
		{"options elsewhere", "OPTIONS", "/nothing", "", nil, 404, "not_found"},
		{"query key next to a bearer", "POST", customers + "?a=1&api_key=x", "{", []edit{bearer(good())}, 400, "query_api_key_unsupported"},
		{"escaped query key", "GET", customers + "?%61pi_key", "", nil, 400, "query_api_key_unsupported"},
		{"no credential", "POST", customers, "{", nil, 401, "missing_credential"},
		{"empty bearer", "GET", customers, "", []edit{header("Authorization", "Bearer ")}, 401, "missing_credential"},
		{"basic", "GET", customers, "", []edit{header("Authorization", "Basic YTpi")}, 401, "missing_credential"},
		{"malformed", "POST", customers, "{", []edit{bearer("svc_live_nonsense")}, 401, "invalid_credential"},
		{"unknown", "POST", customers, "{", []edit{bearer(apikey.New(caller.Test))}, 401, "invalid_credential"},
		{"revoked", "POST", customers, "{", []edit{bearer(revoked)}, 401, "revoked_credential"},
		{"limit", "POST", customers, huge, []edit{bearer(spent)}, 429, "rate_limited"},
		{"scope", "POST", customers, huge, []edit{bearer(restrictedKey())}, 403, "insufficient_scope"},
		{"size", "POST", customers, huge, []edit{bearer(good()), badType}, 413, "request_too_large"},
		{"type", "POST", customers, "{", []edit{bearer(good()), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }}, 400, "missing_content_type"},
		{"json", "POST", customers, "{", []edit{bearer(good()), longKey}, 400, "malformed_json"},
		{"no body", "POST", customers, "", []edit{bearer(good()), header("Content-Type", "application/json"), longKey}, 400, "malformed_json"},
		{"long key", "POST", customers, ada, []edit{bearer(good()), longKey}, 422, "invalid_request"},
		{"empty key", "POST", customers, ada, []edit{bearer(good()), header("Idempotency-Key", "")}, 422, "invalid_request"},
		{"key of 255 characters", "POST", customers, ada, []edit{bearer(good()), header("Idempotency-Key", strings.Repeat("é", 255))}, 201, ""},
		{"well", "POST", customers, ada, []edit{bearer(good())}, 201, ""},
		{"legacy", "GET", "/v1/customers/cu_00000000000000000000000000", "", []edit{bearer(good())}, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, g.send(t, c.method, c.path, c.body, c.edits...), c.status, c.code)
		})
	}
}

// doc_url is an absolute URL at the public address. It points to the paragraph about the response's code, for every base.
func TestAnErrorLeadsToItsParagraph(t *testing.T) {
	t.Parallel()
	g := newWorld(t).start(t)
	for _, path := range []string{"/api/v1/customers", "/v1/customers", "/nothing"} {
		a := g.send(t, "GET", path, "")
		var e struct {
			Error struct {
				DocURL string `json:"doc_url"`
			}
		}
		if err := json.Unmarshal([]byte(a.body), &e); err != nil {
			t.Fatal(err)
		}
		link, err := url.Parse(e.Error.DocURL)
		if err != nil || e.Error.DocURL != "https://booking.test/docs/errors#"+a.code() {
			t.Fatalf("%s: %s leads to %v (%v)", path, a.body, link, err)
		}
		page, err := g.raw("GET", link.Path, "")
		if err != nil || page.StatusCode != 200 || !strings.Contains(page.body, `<h2 id="`+link.Fragment+`">`) {
			t.Errorf("%s: %v %d at %s", path, err, page.StatusCode, link)
		}
	}
}

// The response for an unknown path contains the URL of the list of operations.
func TestNotFoundPointsToTheDocs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	for _, path := range []string{"/nothing", "/api", "/api/v1", "/api/v1/", "/v1", "/v1/", customers + "/", oneCu + "/", "/openapi.yaml/"} {
		a, err := g.raw("GET", path, "", bearer(key))
		if err != nil {
			t.Fatal(err)
		}
		want(t, a, 404, "not_found")
		if !strings.Contains(a.body, " /docs") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// Under /docs, an unknown path is a page with a search and links for people who follow an old link. A request that changes something gets the
// error of the API.
func TestAnUnknownPageOfThePortal(t *testing.T) {
	t.Parallel()
	g := newWorld(t).start(t)
	for _, path := range []string{"/docs/nothing", "/docs/errors/", "/docs/static/nothing.js", "/docs/a/b", "/docs/quickstart.txt"} {
		a, err := g.raw("GET", path, "", header("Accept-Encoding", "identity"))
		if err != nil || a.StatusCode != 404 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") || a.Header.Get("Cache-Control") != "no-store" ||
			a.Header.Get("X-Request-Id") == "" || a.Header.Get("ETag") != "" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s: %v, %d %v", path, err, a.StatusCode, a.Header)
		}
		for _, part := range []string{"<h1>Page not found</h1>", `<form action="/docs/search"`, `href="/docs/quickstart"`, `href="/docs/reference"`} {
			if !strings.Contains(a.body, part) {
				t.Errorf("%s: no %s", path, part)
			}
		}
		head, err := g.raw("HEAD", path, "")
		if err != nil || head.StatusCode != 404 || head.body != "" {
			t.Errorf("HEAD %s: %v, %d", path, err, head.StatusCode)
		}
		want(t, g.send(t, "POST", path, ""), 404, "not_found")
	}
}

func TestChallengesAndAllow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	if a := g.send(t, "PUT", customers, ""); a.Header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow %q", a.Header.Get("Allow"))
	}
	// The response to HEAD has no body, so its headers must contain everything.
	if a, err := g.raw("HEAD", customers, "", bearer(w.identity.newKey())); err != nil || a.StatusCode != 405 ||
		a.Header.Get("Allow") != "GET, POST" || a.body != "" || a.Header.Get("X-Request-Id") == "" {
		t.Errorf("HEAD: %v, %v", a, err)
	}
	for _, c := range []struct {
		want string
		a    *response
	}{
		{`Bearer realm="holdfast"`, g.send(t, "GET", customers, "")},
		{`Bearer realm="holdfast", error="invalid_token"`, g.send(t, "GET", customers, "", bearer("x"))},
		{
			`Bearer realm="holdfast", error="insufficient_scope", scope="write:customers"`,
			g.send(t, "DELETE", oneCu, "", bearer(w.identity.newKey("read:customers"))),
		},
	} {
		if got := c.a.Header.Get("WWW-Authenticate"); got != c.want {
			t.Errorf("%d: WWW-Authenticate %q, want %q", c.a.StatusCode, got, c.want)
		}
	}
}

// A malformed key causes no lookup. An unknown key causes one, then none for a while.
func TestLookupsOfBadKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	g.send(t, "GET", customers, "", bearer("svc_test_"+strings.Repeat("0", 32)))
	if n := w.identity.lookupCount(); n != 0 {
		t.Fatalf("a malformed key cost %d look-ups", n)
	}
	unknown := apikey.New(caller.Live)
	for range 5 {
		want(t, g.send(t, "GET", customers, "", bearer(unknown)), 401, "invalid_credential")
	}
	if n := w.identity.lookupCount(); n != 1 {
		t.Errorf("an unknown key cost %d look-ups", n)
	}
}

func TestHeadersOfAnAuthenticatedResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey("read:customers", "read:units")
	for i, a := range []*response{
		g.send(t, "GET", oneCu, "", bearer(key)),
		g.send(t, "DELETE", oneCu, "", bearer(key)),
	} {
		for name, value := range map[string]string{
			"X-Service-Scope": "read:customers read:units", "RateLimit-Limit": "600",
			"RateLimit-Remaining": []string{"599", "598"}[i], "RateLimit-Reset": "60",
			"RateLimit": `"default";r=` + []string{"599", "598"}[i] + `;t=60`, "RateLimit-Policy": `"default";q=600;w=60`,
		} {
			if got := a.Header.Get(name); got != value {
				t.Errorf("%d: %s %q, want %q", a.StatusCode, name, got, value)
			}
		}
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	g := newWorld(t).start(t)
	for path, part := range map[string]string{
		"/openapi.yaml": "openapi: 3.1.0", "/openapi.json": `"openapi":"3.1.0"`, "/docs": "<html", "/": `href="/docs"`, "/docs/reference": "<html",
		"/docs/quickstart": "<h1", "/docs/quickstart.md": "# Quick start\n", "/llms.txt": "# Holdfast\n", "/llms-full.txt": "# Quick start\n",
		"/openapi-sdk.json": `"default":{"$ref":"#/components/responses/Error"}`, "/openapi-webhooks.json": `"webhooks":{"booking.created":`,
	} {
		a, err := g.raw("GET", path, "", header("Accept-Encoding", "identity"))
		if err != nil || a.StatusCode != 200 || !strings.Contains(a.body, part) || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v, %d", path, err, a.StatusCode)
		}
		head, err := g.raw("HEAD", path, "", header("Accept-Encoding", "identity"))
		if err != nil || head.StatusCode != 200 || head.body != "" || head.Header.Get("ETag") != a.Header.Get("ETag") || head.Header.Get("ETag") == "" {
			t.Errorf("HEAD %s: %v, %d %v", path, err, head.StatusCode, head.Header)
		}
		if posted := g.send(t, "POST", path, ""); posted.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s allows %q", path, posted.Header.Get("Allow"))
		} else {
			want(t, posted, 405, "method_not_allowed")
		}
	}
	a, err := g.raw("GET", "/docs/", "")
	if err != nil || a.Request.URL.Path != "/docs" || a.StatusCode != 200 {
		t.Errorf("/docs/: %v, %d at %s", err, a.StatusCode, a.Request.URL)
	}
}
