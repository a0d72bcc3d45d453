package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// TestFlow checks that an operator signs in and consents, and that the app gets tokens of the tenant, the mode, and the scopes of
// the consent.
func TestFlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	consent := b.signIn(w.request(), w.operator.Email)
	for _, shown := range []string{"Till &amp; &lt;Co&gt;", "Boats", "app.example", "dana@example.com", "View your bookings", "read:bookings", "write:bookings", `value="test"`} {
		if !strings.Contains(consent.body, shown) {
			t.Errorf("the consent page does not show %q", shown)
		}
	}
	got := w.sent(b.submit(consent, "tenant", w.tenant.ID.String(), "mode", "live", "decision", "allow"))
	if got.Get("state") != "s t&ate" || got.Get("iss") != w.server.URL || !domain.IsCode(got.Get("code")) || len(got) != 3 {
		t.Errorf("%v", got)
	}
	a := w.exchange(got.Get("code")).is(t, 200, "")
	if a.ExpiresIn != 3600 || !strings.EqualFold(a.Type, "bearer") || a.Scope != "read:bookings write:bookings" || !domain.IsAccessToken(a.Access) ||
		!domain.IsRefreshToken(a.Refresh) || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v", a)
	}
	p := w.principal(a.Access)
	if p.TenantID != w.tenant.ID || !p.Livemode || p.Name != "Till & <Co>" || p.Revoked || p.OperatorID != w.operator.ID {
		t.Errorf("%+v", p)
	}
	again := w.refresh(a.Refresh).is(t, 200, "")
	if again.Access == a.Access || again.Refresh == a.Refresh || again.Scope != a.Scope {
		t.Errorf("%+v", again)
	}
	for _, access := range []string{a.Access, again.Access} { // a running request with the old token does not fail
		if _, ok := w.alive(access); !ok {
			t.Error("an access token of the family does not work")
		}
	}
}

// TestRedirectsOfEveryKind checks that the response uses the registered redirect URI, of every kind, and that consent is
// requested every time.
func TestRedirectsOfEveryKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	for _, uri := range []string{redirect, "http://127.0.0.1/cb", "http://127.0.0.1:54321/cb", "com.example.app:/cb", "https://app.example/q?a=b"} {
		consent := b.get("/oauth/authorize?" + w.request("redirect_uri", uri, "state", "").Encode())
		if consent.StatusCode != 200 {
			t.Fatalf("%s: %d", uri, consent.StatusCode)
		}
		p := b.submit(consent, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")
		to, got := p.Header.Get("Location"), w.sent(p)
		if !strings.HasPrefix(to, uri) || got.Get("code") == "" || got.Has("state") {
			t.Errorf("%s: %s", uri, to)
		}
		w.exchange(got.Get("code"), "redirect_uri", uri+"x").is(t, 400, "invalid_grant")
		w.exchange(got.Get("code"), "redirect_uri", uri).is(t, 200, "")
	}
}

// redirectTricks are URIs that look like a registered one.
var redirectTricks = []string{
	"https://evil.example/callback", "https://app.example/callback/", "https://app.example/callback/..", "https://app.example/callback?x=1", "https://app.example/callback#x",
	"https://app.example/Callback", "https://APP.example/callback", "HTTPS://app.example/callback", "https://app.example:443/callback", "https://app.example:8443/callback",
	"https://app.example./callback", "https://user@app.example/callback", "https://app.example@evil.example/callback", "https://app.example%2eevil.example/callback",
	"https://app.example/%63allback", "https://app.example//callback", "https://app.example\\@evil.example/callback", "https://app.example/callback%00", "https://app.example/callback ",
	"https://sub.app.example/callback", "https://app.exаmple/callback", "https://xn--pp-example/callback", "http://app.example/callback", "//app.example/callback", "/callback", "callback",
	"http://127.0.0.1:80/other", "http://127.0.0.1:99999999/cb", "http://127.0.0.1:/cb", "http://127.0.0.1:8x/cb", "http://127.0.0.2/cb", "http://127.1:80/cb", "http://localhost/cb",
	"http://[::1]:80/cb", "http://127.0.0.1:80/cb?x", "http://127.0.0.1:80@evil.example/cb", "http://127.0.0.1:80/cb#x", "http://0x7f000001:80/cb", "https://127.0.0.1/cb",
	"com.example.app:/cb/", "com.example.app://cb", "COM.example.app:/cb", "javascript:alert(1)", "data:text/html,x", "urn:ietf:wg:oauth:2.0:oob",
	"https://app.example/q", "https://app.example/q?a=b&c=d", "https://app.example/q?A=b",
}

// TestNoRedirectElsewhere checks that a browser is never redirected to a URI that the app did not register, with or without an
// error: RFC 9700, section 4.1.
func TestNoRedirectElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	for _, uri := range redirectTricks {
		for _, q := range []url.Values{w.request("redirect_uri", uri), w.request("redirect_uri", uri, "scope", "nonsense"), w.request("redirect_uri", uri, "prompt", "none")} {
			if p := b.get("/oauth/authorize?" + q.Encode()); p.StatusCode != 400 || p.Header.Get("Location") != "" || !strings.Contains(p.body, "redirect_uri") {
				t.Errorf("%q: %d %q", uri, p.StatusCode, p.Header.Get("Location"))
			}
		}
	}
	for what, query := range map[string]string{
		"no redirect_uri":     w.request("redirect_uri", "").Encode(),
		"two redirect URIs":   w.request().Encode() + "&redirect_uri=" + url.QueryEscape(redirect),
		"two clients":         w.request().Encode() + "&client_id=" + w.client.ID.String(),
		"no client":           w.request("client_id", "").Encode(),
		"an unknown client":   w.request("client_id", domain.NewAppID().String()).Encode(),
		"no id of a client":   w.request("client_id", "x").Encode(),
		"nothing":             "",
		"a malformed escape":  "client_id=%zz",
		"another kind of id":  w.request("client_id", ids.New[ids.TenantPrefix]().String()).Encode(),
		"fields in a POST":    "x=1",
		"a client in a wrong": w.request("client_id", strings.ToUpper(w.client.ID.String())).Encode(),
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if p := b.do(method, "/oauth/authorize?"+query, w.request()); p.StatusCode != 400 || p.Header.Get("Location") != "" {
				t.Errorf("%s, %s: %d %q", what, method, p.StatusCode, p.Header.Get("Location"))
			}
		}
	}
}

// TestErrorsThatTheAppGets checks that the app receives its errors at its redirect URI, with state and issuer: OAuth 2.1, section
// 4.1.2.1; RFC 9207.
func TestErrorsThatTheAppGets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	restricted := w.newApp(w.tenant, func(p *app.Registration) { p.Scopes = patch.Value("read:bookings") })
	w.verify(restricted, true)
	for what, c := range map[string]struct {
		query url.Values
		want  string
	}{
		"no response type":         {w.request("response_type", ""), "unsupported_response_type"},
		"the implicit grant":       {w.request("response_type", "token"), "unsupported_response_type"},
		"a hybrid grant":           {w.request("response_type", "code token"), "unsupported_response_type"},
		"no challenge":             {w.request("code_challenge", ""), "invalid_request"},
		"no method: plain":         {w.request("code_challenge_method", ""), "invalid_request"},
		"plain":                    {w.request("code_challenge_method", "plain"), "invalid_request"},
		"an unknown method":        {w.request("code_challenge_method", "s256"), "invalid_request"},
		"a short challenge":        {w.request("code_challenge", "abc"), "invalid_request"},
		"a challenge with padding": {w.request("code_challenge", challenge(verifier)+"="), "invalid_request"},
		"an unknown scope":         {w.request("scope", "read:bookings openid"), "invalid_scope"},
		"no scope":                 {w.request("scope", ""), "invalid_scope"},
		"a scope the app lacks":    {w.request("client_id", restricted.ID.String()), "invalid_scope"},
		"prompt none":              {w.request("prompt", "none"), "interaction_required"},
		"an unknown prompt":        {w.request("prompt", "create"), "invalid_request"},
		"a request object":         {w.request("request", "x"), "request_not_supported"},
		"a request elsewhere":      {w.request("request_uri", "https://evil.example/"), "request_uri_not_supported"},
		"another response mode":    {w.request("response_mode", "fragment"), "unsupported_response_mode"},
		"form_post":                {w.request("response_mode", "form_post"), "unsupported_response_mode"},
		"a parameter twice":        {url.Values(map[string][]string(w.request())), "invalid_request"},
	} {
		query := c.query.Encode()
		if what == "a parameter twice" {
			query += "&scope=read%3Abookings"
		}
		p := w.browser().get("/oauth/authorize?" + query)
		got := w.sent(p)
		if got.Get("error") != c.want || got.Get("state") != "s t&ate" || got.Get("iss") != w.server.URL || got.Has("code") || !strings.HasPrefix(p.Header.Get("Location"), redirect+"?") {
			t.Errorf("%s: %v, want %s", what, got, c.want)
		}
	}
}

// TestErrorsOfTheTokenEndpoint checks that an invalid token request gets the error of RFC 6749, section 5.2, and does not
// invalidate the code.
func TestErrorsOfTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newApp(w.tenant, func(*app.Registration) {})
	code := w.browser().allow(w.request(), w.operator.Email).Get("code")
	for what, c := range map[string]struct {
		pairs  []string
		status int
		want   string
	}{
		"no grant type":             {[]string{"grant_type", ""}, 400, "invalid_request"},
		"a password":                {[]string{"grant_type", "password", "username", "a", "password", "b"}, 400, "unsupported_grant_type"},
		"client credentials":        {[]string{"grant_type", "client_credentials"}, 400, "unsupported_grant_type"},
		"a device":                  {[]string{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"}, 400, "unsupported_grant_type"},
		"two grant types":           {[]string{"grant_type", "authorization_code refresh_token"}, 400, "unsupported_grant_type"},
		"no client":                 {[]string{"client_id", ""}, 400, "invalid_request"},
		"an unknown client":         {[]string{"client_id", domain.NewAppID().String()}, 401, "invalid_client"},
		"another client":            {[]string{"client_id", other.ID.String()}, 400, "invalid_grant"},
		"no verifier":               {[]string{"code_verifier", ""}, 400, "invalid_grant"},
		"another verifier":          {[]string{"code_verifier", strings.Repeat("x", 43)}, 400, "invalid_grant"},
		"the challenge as verifier": {[]string{"code_verifier", challenge(verifier)}, 400, "invalid_grant"},
		"no code":                   {[]string{"code", ""}, 400, "invalid_grant"},
		"an unknown code":           {[]string{"code", domain.NewCode()}, 400, "invalid_grant"},
		"no code at all":            {[]string{"code", "x"}, 400, "invalid_grant"},
		"another redirect URI":      {[]string{"redirect_uri", "https://app.example/q?a=b"}, 400, "invalid_grant"},
		"a code as refresh token":   {[]string{"grant_type", "refresh_token", "refresh_token", code}, 400, "invalid_grant"},
	} {
		if got := w.exchange(code, c.pairs...); got.Status != c.status || got.Error != c.want || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %+v, want %d %s", what, got, c.status, c.want)
		}
	}
	twice := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier, verifier}, "client_id": {w.client.ID.String()}}
	w.post("/oauth/token", twice).is(t, 400, "invalid_request")
	inQuery := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "client_id": {w.client.ID.String()}}
	w.post("/oauth/token?"+inQuery.Encode(), url.Values{}).is(t, 400, "invalid_request")
	w.exchange(code).is(t, 200, "") // none of them invalidated it
}

// TestTheChoiceOfTenants checks that an operator of several tenants selects one of those that the app may act for. The page shows
// which scopes each role withholds.
func TestTheChoiceOfTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, _, err := w.app.UpdateApp(t.Context(), by, w.client.ID, app.Registration{Published: patch.Value(true)}); err != nil {
		t.Fatal(err)
	}
	second, third := w.newTenant("Second"), w.newTenant("Third")
	w.invite(second, w.operator.Email, "viewer")
	w.invite(third, w.operator.Email, "viewer")
	if _, err := w.app.RemoveOperator(t.Context(), by, app.MemberRef{Tenant: third.ID, Email: w.operator.Email}); err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	consent := b.signIn(w.request(), w.operator.Email)
	if strings.Count(consent.body, `<option value="tn_`) != 2 || strings.Contains(consent.body, "Third") ||
		!strings.Contains(consent.body, "Your role as viewer of Second does not allow: write:bookings.") {
		t.Errorf("%s", consent.body)
	}
	got := w.sent(b.submit(consent, "tenant", second.ID.String(), "mode", "test", "decision", "allow"))
	if a := w.exchange(got.Get("code")).is(t, 200, ""); a.Scope != "read:bookings" || w.principal(a.Access).TenantID != second.ID {
		t.Errorf("%+v", a)
	}
	only := b.get("/oauth/authorize?" + w.request("scope", "write:bookings").Encode())
	if strings.Contains(only.body, "Second") || !strings.Contains(only.body, "Boats") {
		t.Errorf("%s", only.body)
	}
}

// TestSeveralAccessTokensAreLookedUp checks that each of several tokens gets its own principal, and an unknown one none.
func TestSeveralAccessTokensAreLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expected := map[string]string{} // the scopes of each hash
	hashes := [][]byte{domain.SecretHash("unknown")}
	for _, scope := range []string{"read:bookings", "write:bookings", "read:bookings write:bookings"} {
		hash := domain.SecretHash(w.granted("scope", scope).Access)
		expected[string(hash)], hashes = scope, append(hashes, hash)
	}
	found, err := store.AccessTokens(t.Context(), w.db.App.Read(t.Context()), hashes)
	if err != nil || len(found) != len(expected) {
		t.Fatalf("%d tokens were found: %v", len(found), err)
	}
	for _, f := range found {
		if got := strings.Join(f.Granted(), " "); got != expected[string(f.Hash)] {
			t.Errorf("a token of %q has the scopes %q", expected[string(f.Hash)], got)
		}
	}
}
