package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// push sends an authorization request like the app, and returns the query for the browser.
func (w *world) push(t *testing.T, q url.Values) (query string) {
	t.Helper()
	p := w.browser().do(http.MethodPost, "/oauth/par", q)
	var out struct {
		URI     string `json:"request_uri"`
		Expires int    `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(p.body), &out); err != nil || p.StatusCode != http.StatusCreated || out.Expires != 600 ||
		!strings.HasPrefix(out.URI, "urn:ietf:params:oauth:request_uri:") || p.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s %v: %v", p.StatusCode, p.body, p.Header, err)
	}
	return url.Values{"client_id": q["client_id"], "request_uri": {out.URI}}.Encode()
}

// TestPushedRequests checks that a pushed request has the same sign-in and consent as one in the query, and that the rest of the
// query is ignored: RFC 9126.
func TestPushedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	query := w.push(t, w.request("login_hint", "dana@example.com", "prompt", "login"))
	b := w.browser()
	changed := "/oauth/authorize?" + query + "&" + url.Values{"scope": {"write:webhooks"}, "state": {"changed"}, "redirect_uri": {"https://evil.example/"}, "code_challenge": {"x"}}.Encode()
	form := b.follow(b.get(changed))
	if !strings.Contains(form.body, "Till &amp; &lt;Co&gt;") || !strings.Contains(form.body, `value="dana@example.com"`) || !strings.Contains(form.Header.Get("Content-Security-Policy"), "https://app.example") {
		t.Errorf("%v %s", form.Header, form.body)
	}
	consent := b.follow(b.submit(form, "email", w.operator.Email, "password", password))
	if strings.Contains(consent.body, "write:webhooks") || !strings.Contains(consent.body, "write:bookings") {
		t.Errorf("%s", consent.body)
	}
	p := b.submit(consent, "mode", "test", "decision", "allow")
	got := w.sent(p)
	if got.Get("state") != "s t&ate" || got.Get("iss") != w.server.URL || !strings.HasPrefix(p.Header.Get("Location"), redirect+"?") {
		t.Errorf("%s", p.Header.Get("Location"))
	}
	w.exchange(got.Get("code"), "redirect_uri", redirect).is(t, 200, "")

	other := "/oauth/authorize?" + w.push(t, w.request("scope", "read:units"))
	fields := url.Values{"form": {formOf(consent)}, "tenant": {w.tenant.ID.String()}, "mode": {"test"}, "decision": {"allow"}}
	if p := b.do(http.MethodPost, other, fields); p.StatusCode != 400 {
		t.Errorf("the form of one request allows another: %d", p.StatusCode)
	}
}

// TestWrongRequestURIs checks that a request URI works only for its app and for ten minutes, and cannot be forged.
func TestWrongRequestURIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	evil := w.newApp(w.tenant, func(*app.Registration) {})
	query, err := url.ParseQuery(w.push(t, w.request()))
	if err != nil {
		t.Fatal(err)
	}
	uri := query.Get("request_uri")
	const prefix = "urn:ietf:params:oauth:request_uri:"
	flipped := []byte(uri)
	flipped[len(flipped)-5] ^= 1
	for what, q := range map[string]url.Values{
		"another app":  {"client_id": {evil.ID.String()}, "request_uri": {uri}},
		"no app":       {"request_uri": {uri}},
		"two apps":     {"client_id": {w.client.ID.String(), evil.ID.String()}, "request_uri": {uri}},
		"changed":      {"client_id": query["client_id"], "request_uri": {string(flipped)}},
		"shortened":    {"client_id": query["client_id"], "request_uri": {uri[:len(uri)-4]}},
		"empty":        {"client_id": query["client_id"], "request_uri": {prefix}},
		"made up":      {"client_id": query["client_id"], "request_uri": {prefix + "6esc_11ACC5bwc014ltc14eY22c"}},
		"a form token": {"client_id": query["client_id"], "request_uri": {prefix + formOf(b.signIn(w.request(), w.operator.Email))}},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if p := b.do(method, "/oauth/authorize?"+q.Encode(), w.request()); p.StatusCode != 400 || p.Header.Get("Location") != "" || !strings.Contains(p.body, "invalid_request_uri") {
				t.Errorf("%s, %s: %d %s", what, method, p.StatusCode, p.Header.Get("Location"))
			}
		}
	}
	consent := b.get("/oauth/authorize?" + query.Encode())
	w.pass(9 * time.Minute) // the test takes some time itself
	if p := b.get("/oauth/authorize?" + query.Encode()); p.StatusCode != 200 {
		t.Errorf("before its end: %d", p.StatusCode)
	}
	w.pass(time.Minute)
	if p := b.get("/oauth/authorize?" + query.Encode()); p.StatusCode != 400 {
		t.Errorf("after its end: %d", p.StatusCode)
	}
	if p := b.submit(consent, "mode", "test", "decision", "allow"); p.StatusCode != 400 || p.Header.Get("Location") != "" {
		t.Errorf("a decision after its end: %d", p.StatusCode)
	}
}

// TestErrorsOfPushedRequests checks that the error of an invalid pushed request is returned to the app immediately.
func TestErrorsOfPushedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	restricted := w.newApp(w.tenant, func(p *app.Registration) { p.Scopes = patch.Value("read:bookings") })
	twice := w.request()
	twice["scope"] = []string{"read:bookings", "read:units"}
	for what, c := range map[string]struct {
		form   url.Values
		status int
		code   string
	}{
		"no app":                     {w.request("client_id", ""), 401, "invalid_client"},
		"an unknown app":             {w.request("client_id", domain.NewAppID().String()), 401, "invalid_client"},
		"no redirect URI":            {w.request("redirect_uri", ""), 400, "invalid_request"},
		"an unknown redirect URI":    {w.request("redirect_uri", "https://evil.example/"), 400, "invalid_request"},
		"no challenge":               {w.request("code_challenge", ""), 400, "invalid_request"},
		"plain":                      {w.request("code_challenge_method", "plain"), 400, "invalid_request"},
		"no response type":           {w.request("response_type", ""), 400, "unsupported_response_type"},
		"a scope that the app lacks": {w.request("client_id", restricted.ID.String()), 400, "invalid_scope"},
		"a request URI":              {w.request("request_uri", "urn:ietf:params:oauth:request_uri:x"), 400, "invalid_request"},
		"a request object":           {w.request("request", "x"), 400, "request_not_supported"},
		"prompt none":                {w.request("prompt", "none"), 400, "interaction_required"},
		"a parameter twice":          {twice, 400, "invalid_request"},
		"too much":                   {w.request("state", strings.Repeat("s", 4000)), 400, "invalid_request"},
	} {
		got := w.post("/oauth/par", c.form)
		if got.Status != c.status || got.Error != c.code || got.header.Get("Cache-Control") != "no-store" || !errorText.MatchString(got.Description) {
			t.Errorf("%s: %d %s %q, want %d %s", what, got.Status, got.Error, got.Description, c.status, c.code)
		}
	}
	if got := w.metadata(t)["pushed_authorization_request_endpoint"]; got != w.server.URL+"/oauth/par" {
		t.Errorf("%v", got)
	}
}
