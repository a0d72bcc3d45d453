package oauth_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// rule is one requirement of a specification for an authorization server.
type rule struct {
	section, says string
	check         func(t *testing.T, w *world)
}

// hold checks rules in sequence, in one world.
func hold(t *testing.T, rules []rule) {
	t.Helper()
	w := newWorld(t)
	for _, r := range rules {
		t.Run(r.section+" "+r.says, func(t *testing.T) {
			w.t = t
			r.check(t, w)
		})
	}
	w.t = t
}

// authorize sends an authorization request from a browser without a session.
func (w *world) authorize(q url.Values) *page {
	w.t.Helper()
	return w.browser().get("/oauth/authorize?" + q.Encode())
}

// refused fails the test unless the app receives the error at its redirect URI.
func (w *world) refused(t *testing.T, q url.Values, code string) {
	t.Helper()
	if got := w.sent(w.authorize(q)); got.Get("error") != code || got.Has("code") {
		t.Errorf("%v, want %s", got, code)
	}
}

// metadata returns the document of RFC 8414.
func (w *world) metadata(t *testing.T) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.browser().get("/.well-known/oauth-authorization-server").body), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

var errorText = regexp.MustCompile(`^[\x20-\x21\x23-\x5B\x5D-\x7E]*$`)

// oauth21 lists the requirements of draft-ietf-oauth-v2-1-16 for an authorization server with MUST and MUST NOT, by section.
// Requirements for clients and for resource servers are not listed: the tests of the gateway cover the latter.
var oauth21 = []rule{
	{"1.4.1", "a scope that differs from the requested one is named in the response", func(t *testing.T, w *world) {
		w.invite(w.tenant, "viewer@example.com", "viewer")
		code := w.browser().allow(w.request(), "viewer@example.com").Get("code")
		if got := w.exchange(code).is(t, 200, ""); got.Scope != "read:bookings" {
			t.Errorf("%q", got.Scope)
		}
	}},
	{"1.4.1", "a request without a scope has a default or is invalid_scope", func(t *testing.T, w *world) {
		w.refused(t, w.request("scope", ""), "invalid_scope")
	}},
	{"1.7.1", "no length of a value is assumed", func(t *testing.T, w *world) {
		state := strings.Repeat("s", 4000)
		if got := w.browser().allow(w.request("state", state), w.operator.Email); got.Get("state") != state {
			t.Errorf("%.100v", got)
		}
		w.token("grant_type", "refresh_token", "refresh_token", strings.Repeat("x", 8000)).is(t, 400, "invalid_grant")
	}},
	{"2.2", "a client identifier is no proof of a client", func(t *testing.T, w *world) {
		w.token("grant_type", "client_credentials").is(t, 400, "unsupported_grant_type")
	}},
	{"2.3", "a redirect URI is absolute and has no fragment; its query is preserved", func(t *testing.T, w *world) {
		for _, uri := range []string{"/callback", "//app.example/callback", "https://app.example/#x", "https://app.example/#"} {
			if err := domain.CheckRedirectURI(uri); err == nil {
				t.Errorf("%s may be registered", uri)
			}
		}
		b := w.browser()
		p := b.submit(b.signIn(w.request("redirect_uri", "https://app.example/q?a=b"), w.operator.Email), "mode", "test", "decision", "allow")
		if got := w.sent(p); got.Get("a") != "b" || got.Get("code") == "" {
			t.Errorf("%s", p.Header.Get("Location"))
		}
	}},
	{"2.3.1", "redirect URIs are registered whole, and compared character by character but for the port of a loopback address", func(t *testing.T, w *world) {
		if _, err := w.app.CreateApp(t.Context(), by, w.tenant.ID, app.Registration{Name: patch.Value("None"), Scopes: patch.Value("all")}); err == nil {
			t.Error("an app without redirect URIs is registered")
		}
		for uri, status := range map[string]int{redirect: 303, redirect + "/": 400, strings.ToUpper(redirect): 400, "http://127.0.0.1:8976/cb": 303, "http://127.0.0.1:8976/cb/": 400} {
			if p := w.authorize(w.request("redirect_uri", uri)); p.StatusCode != status {
				t.Errorf("%s: %d", uri, p.StatusCode)
			}
		}
	}},
	{"2.3.2", "with several redirect URIs the request names one", func(t *testing.T, w *world) {
		if p := w.authorize(w.request("redirect_uri", "")); p.StatusCode != 400 || p.Header.Get("Location") != "" {
			t.Errorf("%d", p.StatusCode)
		}
		one := w.newApp(w.tenant, func(p *app.Registration) { p.RedirectURIs = patch.Value([]string{redirect}) })
		if p := w.authorize(w.request("redirect_uri", "", "client_id", one.ID.String())); p.StatusCode != 303 {
			t.Errorf("with one: %d", p.StatusCode)
		}
	}},
	{"2.3.5", "no one is redirected to an invalid redirect URI", func(t *testing.T, w *world) {
		for _, uri := range []string{"https://evil.example/", "x", redirect + "?x"} {
			if p := w.authorize(w.request("redirect_uri", uri, "scope", "nonsense")); p.StatusCode != 400 || p.Header.Get("Location") != "" {
				t.Errorf("%s: %d %s", uri, p.StatusCode, p.Header.Get("Location"))
			}
		}
	}},
	{"3.1", "the operator is authenticated first", func(t *testing.T, w *world) {
		if p := w.authorize(w.request()); p.StatusCode != 303 || !strings.HasPrefix(p.Header.Get("Location"), "/oauth/sign-in?") {
			t.Errorf("%d %s", p.StatusCode, p.Header.Get("Location"))
		}
	}},
	{"3.1", "the endpoint has no fragment and takes GET", func(t *testing.T, w *world) {
		endpoint, _ := w.metadata(t)["authorization_endpoint"].(string)
		if strings.Contains(endpoint, "#") || endpoint != w.server.URL+"/oauth/authorize" {
			t.Errorf("%q", endpoint)
		}
	}},
	{"3.1", "unknown parameters are ignored, empty ones are absent, and none may come twice", func(t *testing.T, w *world) {
		q := w.request("x_unknown", "1", "ui_locales", "de")
		q.Set("request_uri", "")
		if p := w.authorize(q); p.StatusCode != 303 || !strings.HasPrefix(p.Header.Get("Location"), "/oauth/sign-in?") {
			t.Errorf("%d %s", p.StatusCode, p.Header.Get("Location"))
		}
		w.refused(t, w.request("response_type", " "), "unsupported_response_type")
		p := w.browser().get("/oauth/authorize?" + w.request().Encode() + "&state=again")
		if got := w.sent(p); got.Get("error") != "invalid_request" {
			t.Errorf("%v", got)
		}
	}},
	{"3.1", "the endpoint does not respond to scripts of other origins", func(t *testing.T, w *world) {
		w.client = w.newApp(w.tenant, func(p *app.Registration) { p.Origins = patch.Value([]string{"https://app.example"}) })
		w.verify(w.client, true)
		b := w.browser()
		b.header.Set("Origin", "https://app.example")
		if p := b.get("/oauth/authorize?" + w.request().Encode()); p.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v", p.Header)
		}
	}},
	{"3.2", "the endpoint takes POST alone, and parameters of the body alone", func(t *testing.T, w *world) {
		if p := w.browser().get("/oauth/token?" + w.request().Encode()); p.StatusCode != 404 && p.StatusCode != 405 {
			t.Errorf("GET: %d", p.StatusCode)
		}
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		q := url.Values{"grant_type": {"authorization_code"}, "client_id": {w.client.ID.String()}, "code": {code}, "code_verifier": {verifier}}
		w.post("/oauth/token?"+q.Encode(), url.Values{}).is(t, 400, "invalid_request")
		w.post("/oauth/token", q).is(t, 200, "")
	}},
	{"3.2", "unknown parameters are ignored, empty ones are absent, and none may come twice", func(t *testing.T, w *world) {
		first := w.granted()
		second := w.refresh(first.Refresh, "x_unknown", "1", "audience", "x").is(t, 200, "")
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {w.client.ID.String()}, "refresh_token": {second.Refresh}, "scope": {""}}
		third := w.post("/oauth/token", form).is(t, 200, "")
		form["refresh_token"] = []string{third.Refresh, third.Refresh}
		w.post("/oauth/token", form).is(t, 400, "invalid_request")
	}},
	{"3.1", "an unknown parameter may come twice, and a response has each parameter once", func(t *testing.T, w *world) {
		p := w.browser().get("/oauth/authorize?" + w.request().Encode() + "&x_unknown=a&x_unknown=b")
		if p.StatusCode != 303 || !strings.HasPrefix(p.Header.Get("Location"), "/oauth/sign-in?") {
			t.Errorf("%d %s", p.StatusCode, p.Header.Get("Location"))
		}
		for _, name := range []string{"code", "state", "iss", "error"} {
			if err := domain.CheckRedirectURI("https://app.example/cb?x=1&" + name + "=y"); err == nil {
				t.Errorf("a redirect URI with %s may be registered", name)
			}
		}
		if got := w.sent(w.authorize(w.request("scope", "x", "state", ""))); got.Has("state") {
			t.Errorf("%v", got)
		}
		q := w.request("scope", "x")
		q.Set("state", "")
		if got := w.sent(w.authorize(q)); got.Has("state") {
			t.Errorf("an empty state comes back: %v", got)
		}
	}},
	{"3.2.2", "client authentication that is sent is checked, and one client is named", func(t *testing.T, w *world) {
		first := w.granted()
		for _, extra := range [][]string{{"client_secret", "guess"}, {"client_assertion", "x"}} {
			w.refresh(first.Refresh, extra...).is(t, 401, "invalid_client")
		}
		other := w.newApp(w.tenant, func(*app.Registration) {})
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {w.client.ID.String()}, "refresh_token": {first.Refresh}, "x_unknown": {"a", "b"}}
		for id, status := range map[string]int{other.ID.String(): 400, w.client.ID.String(): 200} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/oauth/token", strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.SetBasicAuth(id, "")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != status {
				t.Errorf("%s in the header: %d, want %d", id, res.StatusCode, status)
			}
		}
	}},
	{"3.2.2", "a request without a grant type is invalid_request, with an unknown one unsupported_grant_type", func(t *testing.T, w *world) {
		w.token("code", "x").is(t, 400, "invalid_request")
		w.token("grant_type", "urn:x").is(t, 400, "unsupported_grant_type")
	}},
	{"3.2.3", "the response is JSON with the token, its type, lifetime and scope, and is not stored", func(t *testing.T, w *world) {
		got := w.granted()
		if got.Access == "" || !strings.EqualFold(got.Type, "bearer") || got.ExpiresIn != 3600 || got.Scope == "" || got.Refresh == "" ||
			got.header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
			t.Errorf("%+v %v", got, got.header)
		}
	}},
	{"3.2.3", "a refresh token is bound to the scope that was consented to", func(t *testing.T, w *world) {
		first := w.granted("scope", "read:bookings")
		w.refresh(first.Refresh, "scope", "read:bookings write:bookings").is(t, 400, "invalid_scope")
		w.refresh(first.Refresh).is(t, 200, "")
	}},
	{"3.2.4", "an error has its code and a text of printable ASCII, and is not stored", func(t *testing.T, w *world) {
		for _, got := range []tokens{
			w.token("grant_type", "ü\"\\\n"), w.token("ü\"\n", "1", "grant_type", ""), w.refresh("ü\""), w.token("client_id", "app_\"ü", "grant_type", "refresh_token", "refresh_token", "x"),
		} {
			if got.Status < 400 || got.Status > 401 || got.Error == "" || !errorText.MatchString(got.Error) || !errorText.MatchString(got.Description) || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%+v %v", got, got.header)
			}
		}
	}},
	{"3.2.4", "a client that fails by the Authorization header gets 401 and a challenge of its scheme", func(t *testing.T, w *world) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/oauth/token", strings.NewReader("grant_type=refresh_token&refresh_token=x"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(w.client.ID.String(), "a secret")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 401 || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
	}},
	{"4.1.1", "a response type that is missing or unknown is an error", func(t *testing.T, w *world) {
		for _, kind := range []string{"", "token", "id_token", "code id_token", "CODE", "Code"} {
			w.refused(t, w.request("response_type", kind), "unsupported_response_type")
		}
	}},
	{"4.1.1", "a challenge of method S256 is demanded", func(t *testing.T, w *world) {
		for _, q := range []url.Values{
			w.request("code_challenge", ""), w.request("code_challenge_method", ""), w.request("code_challenge_method", "plain"), w.request("code_challenge_method", "S512"),
		} {
			w.refused(t, q, "invalid_request")
		}
	}},
	{"4.1.2", "code, state and issuer come back, the challenge does not", func(t *testing.T, w *world) {
		got := w.browser().allow(w.request(), w.operator.Email)
		if got.Get("code") == "" || got.Get("state") != "s t&ate" || got.Get("iss") != w.server.URL || strings.Contains(got.Encode(), challenge(verifier)) || len(got) != 3 {
			t.Errorf("%v", got)
		}
	}},
	{"4.1.2", "a code expires shortly after it was given", func(t *testing.T, w *world) {
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		w.pass(domain.CodeLifetime)
		w.exchange(code).is(t, 400, "invalid_grant")
	}},
	{"4.1.2.1", "errors go to the app with state and issuer once client and redirect URI are known to be good", func(t *testing.T, w *world) {
		got := w.sent(w.authorize(w.request("scope", "nonsense")))
		if got.Get("error") != "invalid_scope" || got.Get("state") != "s t&ate" || got.Get("iss") != w.server.URL || !errorText.MatchString(got.Get("error_description")) {
			t.Errorf("%v", got)
		}
		for _, q := range []url.Values{w.request("client_id", domain.NewAppID().String()), w.request("client_id", "")} {
			if p := w.authorize(q); p.StatusCode != 400 || p.Header.Get("Location") != "" {
				t.Errorf("%d %s", p.StatusCode, p.Header.Get("Location"))
			}
		}
	}},
	{"4.1.2.1", "the app hears of a refusal", func(t *testing.T, w *world) {
		b := w.browser()
		got := w.sent(b.submit(b.signIn(w.request(), w.operator.Email), "mode", "test", "decision", "deny"))
		if got.Get("error") != "access_denied" || got.Get("state") != "s t&ate" || got.Get("iss") != w.server.URL || got.Has("code") {
			t.Errorf("%v", got)
		}
	}},
	{"4.1.3", "a code gives tokens once; a second valid request ends them", func(t *testing.T, w *world) {
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		first := w.exchange(code).is(t, 200, "")
		w.exchange(code).is(t, 400, "invalid_grant")
		if _, ok := w.alive(first.Access); ok {
			t.Error("the access token works")
		}
		w.refresh(first.Refresh).is(t, 400, "invalid_grant")
	}},
	{"4.1.3", "the code is of this client, and the verifier belongs to its challenge", func(t *testing.T, w *world) {
		other := w.newApp(w.tenant, func(*app.Registration) {})
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		w.exchange(code, "client_id", other.ID.String()).is(t, 400, "invalid_grant")
		w.exchange(code, "code_verifier", "").is(t, 400, "invalid_grant")
		w.exchange(code, "code_verifier", strings.Repeat("x", 43)).is(t, 400, "invalid_grant")
		w.exchange(code, "code_verifier", challenge(verifier)).is(t, 400, "invalid_grant")
		w.exchange(code).is(t, 200, "")
	}},
	{"4.3", "a refresh token stays bound to its client", func(t *testing.T, w *world) {
		other := w.newApp(w.tenant, func(*app.Registration) {})
		first := w.granted()
		w.refresh(first.Refresh, "client_id", other.ID.String()).is(t, 400, "invalid_grant")
		w.refresh(first.Refresh).is(t, 200, "")
	}},
	{"4.3", "a refresh token cannot be forged, changed or guessed", func(t *testing.T, w *world) {
		first := w.granted()
		changed := []byte(first.Refresh)
		changed[len(changed)-10] ^= 1
		for _, forged := range []string{string(changed), domain.NewRefreshToken(""), domain.NewRefreshToken(first.Refresh)[:len(first.Refresh)-1] + "0"} {
			w.token("grant_type", "refresh_token", "refresh_token", forged).is(t, 400, "invalid_grant")
		}
	}},
	{"4.3.1", "the grant is still active", func(t *testing.T, w *world) {
		first := w.granted()
		w.post("/oauth/revoke", url.Values{"client_id": {w.client.ID.String()}, "token": {first.Refresh}}).is(t, 200, "")
		w.refresh(first.Refresh).is(t, 400, "invalid_grant")
	}},
	{"4.3.1", "a replay is detected by rotation, and ends the grant", func(t *testing.T, w *world) {
		first := w.granted()
		second := w.refresh(first.Refresh).is(t, 200, "")
		if first.Refresh == second.Refresh {
			t.Fatal("the refresh token stays")
		}
		w.refresh(first.Refresh).is(t, 400, "invalid_grant")
		w.refresh(second.Refresh).is(t, 400, "invalid_grant")
		if _, ok := w.alive(second.Access); ok {
			t.Error("the access token works")
		}
	}},
	{"4.3.3", "a new refresh token has the scope of the old one, regardless of the access token's scope", func(t *testing.T, w *world) {
		first := w.granted()
		restricted := w.refresh(first.Refresh, "scope", "read:bookings").is(t, 200, "")
		if wide := w.refresh(restricted.Refresh).is(t, 200, ""); restricted.Scope != "read:bookings" || wide.Scope != first.Scope {
			t.Errorf("%q, %q, %q", first.Scope, restricted.Scope, wide.Scope)
		}
	}},
	{"5.2", "the response to a request with an expired or revoked token says so", func(t *testing.T, w *world) {
		first := w.granted()
		if got := w.introspect(first.Access); got["active"] != true {
			t.Errorf("%v", got)
		}
		w.pass(domain.AccessTokenLifetime)
		if got := w.introspect(first.Access); got["active"] != false || len(got) != 1 {
			t.Errorf("%v", got)
		}
	}},
	{"7.1.3.4", "no token is in a cookie", func(t *testing.T, w *world) {
		b := w.browser()
		code := b.allow(w.request(), w.operator.Email).Get("code")
		first := w.exchange(code).is(t, 200, "")
		u, _ := url.Parse(w.server.URL)
		for _, c := range b.client.Jar.Cookies(u) {
			if strings.Contains(c.Value, code) || strings.Contains(c.Value, first.Access) || strings.Contains(c.Value, first.Refresh) || strings.HasPrefix(c.Value, "svc_") {
				t.Errorf("%s", c.Name)
			}
		}
	}},
	{"7.5.3", "a replayed code with wrong parameters ends nothing", func(t *testing.T, w *world) {
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		first := w.exchange(code).is(t, 200, "")
		w.exchange(code, "code_verifier", strings.Repeat("x", 43)).is(t, 400, "invalid_grant")
		if _, ok := w.alive(first.Access); !ok {
			t.Error("a stranger has ended the grant")
		}
	}},
	{"7.5.4", "the response to forms with credentials is 303", func(t *testing.T, w *world) {
		b := w.browser()
		form := b.follow(b.get("/oauth/authorize?" + w.request().Encode()))
		entered := b.submit(form, "email", w.operator.Email, "password", password)
		decided := b.submit(b.follow(entered), "mode", "test", "decision", "allow")
		if entered.StatusCode != http.StatusSeeOther || decided.StatusCode != http.StatusSeeOther {
			t.Errorf("%d %d", entered.StatusCode, decided.StatusCode)
		}
	}},
	{"7.7", "codes and tokens have at least 128 random bits", func(t *testing.T, w *world) {
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		got := w.exchange(code).is(t, 200, "")
		for what, secret := range map[string]string{"code": code, "access token": got.Access, "refresh token": got.Refresh} {
			const prefix, checksum = len("svc_at_"), 6
			if bits := float64(len(secret)-prefix-checksum) * math.Log2(32); bits < 128 {
				t.Errorf("%s: %.0f bits", what, bits)
			}
		}
	}},
	{"7.10", "the metadata says which challenge methods there are", func(t *testing.T, w *world) {
		if got, _ := w.metadata(t)["code_challenge_methods_supported"].([]any); len(got) != 1 || got[0] != "S256" {
			t.Errorf("%v", got)
		}
	}},
	{"7.11", "no page can be framed", func(t *testing.T, w *world) {
		b := w.browser()
		for _, p := range []*page{b.signIn(w.request(), w.operator.Email), b.get("/oauth/account"), b.get("/oauth/sign-in"), w.authorize(w.request("client_id", "x"))} {
			if p.Header.Get("X-Frame-Options") != "DENY" || !strings.Contains(p.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Errorf("%s: %v", p.path, p.Header)
			}
		}
	}},
	{"7.12", "state and redirect URI are taken for hostile", func(t *testing.T, w *world) {
		const hostile = "\"><script>alert(1)</script>\r\nSet-Cookie: a=b"
		b := w.browser()
		consent := b.signIn(w.request("state", hostile), w.operator.Email)
		p := b.submit(consent, "mode", "test", "decision", "allow")
		if strings.Contains(consent.body, "<script") || w.sent(p).Get("state") != hostile || strings.ContainsAny(p.Header.Get("Location"), "\r\n<>\"") || p.Header.Get("Set-Cookie") != "" && strings.Contains(p.Header.Get("Set-Cookie"), "a=b") {
			t.Errorf("%s %v", p.Header.Get("Location"), p.Header)
		}
		if p := w.authorize(w.request("redirect_uri", hostile)); strings.Contains(p.body, "<script") || p.Header.Get("Location") != "" {
			t.Errorf("%s", p.body)
		}
	}},
	{"8.4.2", "any port of a registered loopback address may be used", func(t *testing.T, w *world) {
		for _, port := range []string{"1", "8080", "65535"} {
			if p := w.authorize(w.request("redirect_uri", "http://127.0.0.1:"+port+"/cb")); p.StatusCode != 303 || !strings.HasPrefix(p.Header.Get("Location"), "/oauth/sign-in") {
				t.Errorf("%s: %d", port, p.StatusCode)
			}
		}
	}},
	{"10.1", "there are no implicit and password grants", func(t *testing.T, w *world) {
		w.refused(t, w.request("response_type", "token"), "unsupported_response_type")
		w.token("grant_type", "password", "username", w.operator.Email, "password", password).is(t, 400, "unsupported_grant_type")
		m := w.metadata(t)
		if types, _ := m["grant_types_supported"].([]any); len(types) != 2 || slices.Contains(types, any("password")) {
			t.Errorf("%v", types)
		}
	}},
	{"10.2", "the token request needs no redirect URI; one that is sent is the same", func(t *testing.T, w *world) {
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		w.exchange(code, "redirect_uri", redirect+"x").is(t, 400, "invalid_grant")
		w.exchange(code).is(t, 200, "")
	}},
}

func TestOAuth21(t *testing.T) {
	t.Parallel()
	hold(t, oauth21)
}
