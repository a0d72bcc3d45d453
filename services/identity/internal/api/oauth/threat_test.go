package oauth_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// rfc9700 lists the attacks of RFC 9700, section 4, that an authorization server can prevent. They run in sequence.
var rfc9700 = []rule{
	{"4.1", "a code does not go where the app has not registered", func(t *testing.T, w *world) {
		b := w.browser()
		b.signIn(w.request(), w.operator.Email)
		for _, uri := range []string{
			"https://app.example.evil.example/callback", "https://app.example/callback/../open-redirect?to=https://evil.example", "https://evil.example#https://app.example/callback",
			"https://app.example/callback?x=https://evil.example", "https://app.example%2f@evil.example/callback",
		} {
			q := w.request("redirect_uri", uri)
			if p := b.get("/oauth/authorize?" + q.Encode()); p.StatusCode != 400 || p.Header.Get("Location") != "" {
				t.Errorf("%s: %d %s", uri, p.StatusCode, p.Header.Get("Location"))
			}
			if p := b.do(http.MethodPost, "/oauth/authorize?"+q.Encode(), url.Values{"decision": {"allow"}, "mode": {"test"}}); p.Header.Get("Location") != "" {
				t.Errorf("%s by a form: %s", uri, p.Header.Get("Location"))
			}
		}
	}},
	{"4.1", "a redirect URI is not swapped between consent and exchange", func(t *testing.T, w *world) {
		b := w.browser()
		consent := b.signIn(w.request(), w.operator.Email)
		form := url.Values{"form": {formOf(consent)}, "tenant": {w.tenant.ID.String()}, "mode": {"test"}, "decision": {"allow"}}
		swapped := w.request("redirect_uri", "https://app.example/q?a=b")
		if p := b.do(http.MethodPost, "/oauth/authorize?"+swapped.Encode(), form); p.Header.Get("Location") != "" {
			t.Errorf("the form of one request allows another: %s", p.Header.Get("Location"))
		}
		code := w.sent(b.submit(consent, "mode", "test", "decision", "allow")).Get("code")
		w.exchange(code, "redirect_uri", "https://app.example/q?a=b").is(t, 400, "invalid_grant")
	}},
	{"4.2", "pages send their address to no other site, and load nothing from one", func(t *testing.T, w *world) {
		b := w.browser()
		for _, p := range []*page{b.signIn(w.request(), w.operator.Email), b.get("/oauth/sign-in?" + w.request().Encode()), w.authorize(w.request("redirect_uri", "x"))} {
			if p.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(p.Header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%s: %v", p.path, p.Header)
			}
		}
		code := b.submit(b.get("/oauth/authorize?"+w.request().Encode()), "mode", "test", "decision", "allow")
		if code.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("the redirect: %v", code.Header)
		}
	}},
	{"4.2", "a code that has leaked is of no use without its verifier, and none after its exchange", func(t *testing.T, w *world) {
		code := w.browser().allow(w.request(), w.operator.Email).Get("code")
		w.exchange(code, "code_verifier", strings.Repeat("g", 64)).is(t, 400, "invalid_grant")
		w.exchange(code).is(t, 200, "")
		w.exchange(code).is(t, 400, "invalid_grant")
	}},
	{"4.3", "no access token is ever in an address", func(t *testing.T, w *world) {
		got := w.browser().allow(w.request(), w.operator.Email)
		for name, values := range got {
			if strings.HasPrefix(values[0], "svc_at_") || strings.HasPrefix(values[0], "svc_rt_") {
				t.Errorf("%s", name)
			}
		}
		first := w.exchange(got.Get("code")).is(t, 200, "")
		w.post("/oauth/revoke?token="+first.Refresh, url.Values{"client_id": {w.client.ID.String()}}).is(t, 400, "invalid_request")
		if _, ok := w.alive(first.Access); !ok {
			t.Error("a token in the query counts")
		}
	}},
	{"4.3", "the pages of a flow are not stored", func(t *testing.T, w *world) {
		b := w.browser()
		for _, p := range []*page{b.signIn(w.request(), w.operator.Email), b.get("/oauth/account"), b.get("/oauth/authorize?" + w.request("scope", "x").Encode())} {
			if p.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", p.path, p.Header)
			}
		}
	}},
	{"4.4", "every response to an app names its issuer, as the metadata does", func(t *testing.T, w *world) {
		m := w.metadata(t)
		if m["issuer"] != w.server.URL || m["authorization_response_iss_parameter_supported"] != true {
			t.Errorf("%v", m)
		}
		b := w.browser()
		consent := b.signIn(w.request(), w.operator.Email)
		for what, got := range map[string]url.Values{
			"an error": w.sent(w.authorize(w.request("scope", "x"))), "a refusal": w.sent(b.submit(consent, "mode", "test", "decision", "deny")),
			"a code": w.sent(b.submit(consent, "mode", "test", "decision", "allow")),
		} {
			if !slices.Equal(got["iss"], []string{w.server.URL}) {
				t.Errorf("%s: %v", what, got)
			}
		}
	}},
	{"4.5", "a code of the victim's flow is not exchanged in the attacker's", func(t *testing.T, w *world) {
		const attackers = "an attacker's own verifier, which it has begun its flow with"
		w.sent(w.authorize(w.request("code_challenge", challenge(attackers), "scope", "x"))) // the attacker's own flow
		stolen := w.browser().allow(w.request(), w.operator.Email).Get("code")
		w.exchange(stolen, "code_verifier", attackers).is(t, 400, "invalid_grant")
		if first := w.exchange(stolen).is(t, 200, ""); first.Access == "" {
			t.Error("the attempt has burnt the victim's code")
		}
	}},
	{"4.5", "a code of one app is not exchanged by another", func(t *testing.T, w *world) {
		evil := w.newApp(w.tenant, func(*app.Registration) {})
		stolen := w.browser().allow(w.request(), w.operator.Email).Get("code")
		w.exchange(stolen, "client_id", evil.ID.String()).is(t, 400, "invalid_grant")
		w.exchange(stolen).is(t, 200, "")
	}},
	{"4.6", "an access token says which app it is of, so that an injected one is recognized", func(t *testing.T, w *world) {
		first := w.granted()
		if got := w.introspect(first.Access); got["client_id"] != w.client.ID.String() || got["sub"] != w.operator.ID.String() {
			t.Errorf("%v", got)
		}
	}},
	{"4.7", "state comes back as it was, and a code needs the verifier of its own browser", func(t *testing.T, w *world) {
		for _, state := range []string{"a b&c=d#e", "%00%0d", "ü€😀", strings.Repeat("s", 1000)} {
			if got := w.browser().allow(w.request("state", state), w.operator.Email); got.Get("state") != state {
				t.Errorf("%.40q came back as %.40q", state, got.Get("state"))
			}
		}
	}},
	{"4.7", "a form that another site sends, or of another browser, allows nothing", func(t *testing.T, w *world) {
		victim, attacker := w.browser(), w.browser()
		w.invite(w.tenant, "attacker@example.com", "owner")
		consent := victim.signIn(w.request(), w.operator.Email)
		lured := attacker.signIn(w.request(), "attacker@example.com")
		form := url.Values{"tenant": {w.tenant.ID.String()}, "mode": {"test"}, "decision": {"allow"}, "form": {formOf(lured)}}
		if p := victim.do(http.MethodPost, consent.path, form); p.Header.Get("Location") != "" {
			t.Error("the form of the attacker's browser counts")
		}
		form.Set("form", formOf(consent))
		victim.header.Set("Sec-Fetch-Site", "cross-site")
		if p := victim.do(http.MethodPost, consent.path, form); p.StatusCode != http.StatusForbidden || p.Header.Get("Location") != "" {
			t.Errorf("a form of another site: %d", p.StatusCode)
		}
		victim.header.Del("Sec-Fetch-Site")
		victim.header.Set("Origin", "https://evil.example")
		if p := victim.do(http.MethodPost, consent.path, form); p.StatusCode != http.StatusForbidden {
			t.Errorf("a form of another origin: %d", p.StatusCode)
		}
		victim.header.Del("Origin")
		if p := victim.do(http.MethodPost, consent.path, form); p.StatusCode != http.StatusSeeOther {
			t.Errorf("the victim's own form: %d", p.StatusCode)
		}
	}},
	{"4.8", "PKCE cannot be left out, weakened or forgotten", func(t *testing.T, w *world) {
		w.refused(t, w.request("code_challenge", "", "code_challenge_method", ""), "invalid_request")
		w.refused(t, w.request("code_challenge", verifier, "code_challenge_method", "plain"), "invalid_request")
		b := w.browser()
		consent := b.signIn(w.request(), w.operator.Email)
		form := url.Values{"form": {formOf(consent)}, "tenant": {w.tenant.ID.String()}, "mode": {"test"}, "decision": {"allow"}}
		if got := w.sent(b.do(http.MethodPost, "/oauth/authorize?"+w.request("code_challenge", "").Encode(), form)); got.Has("code") {
			t.Error("the form of a request with a challenge gives a code without one")
		}
		code := w.sent(b.submit(consent, "mode", "test", "decision", "allow")).Get("code")
		w.exchange(code, "code_verifier", "").is(t, 400, "invalid_grant")
		w.exchange(code, "code_verifier", strings.Repeat("x", 43)).is(t, 400, "invalid_grant")
		w.exchange(code, "code_verifier", "").is(t, 400, "invalid_grant") // not even after a wrong one
	}},
	{"4.9", "a token is of one tenant, one mode and the scopes that were consented to", func(t *testing.T, w *world) {
		first := w.granted("scope", "read:bookings")
		p := w.principal(first.Access)
		if p.TenantID != w.tenant.ID || p.Livemode || !slices.Equal(p.Granted(), []string{"read:bookings"}) {
			t.Errorf("%+v", p)
		}
	}},
	{"4.10", "a stolen access token ends within an hour, and at once with its grant", func(t *testing.T, w *world) {
		first := w.granted()
		if left := w.principal(first.Access).ExpiresAt.Sub(w.now()); left > domain.AccessTokenLifetime {
			t.Errorf("it lasts %s", left)
		}
		w.post("/oauth/revoke", url.Values{"client_id": {w.client.ID.String()}, "token": {first.Access}}).is(t, 200, "")
		if _, ok := w.alive(first.Access); ok {
			t.Error("it works after its grant was revoked")
		}
	}},
	{"4.11", "the server redirects no one to a parameter of a request", func(t *testing.T, w *world) {
		b := w.browser()
		for _, name := range []string{"next", "return_to", "redirect", "continue", "post_logout_redirect_uri", "redirect_uri"} {
			for _, path := range []string{"/oauth/sign-in?", "/oauth/sign-out?", "/oauth/account?"} {
				p := b.do(http.MethodPost, path+name+"=https%3A%2F%2Fevil.example%2F", url.Values{name: {"https://evil.example/"}, "email": {w.operator.Email}, "password": {password}})
				if to := p.Header.Get("Location"); to != "" && !strings.HasPrefix(to, "/oauth/") {
					t.Errorf("%s%s: %s", path, name, to)
				}
			}
		}
		form := b.get("/oauth/sign-in?redirect_uri=https%3A%2F%2Fevil.example%2F&client_id=x")
		if p := b.submit(form, "email", w.operator.Email, "password", password); !strings.HasPrefix(p.Header.Get("Location"), "/oauth/authorize?") {
			t.Errorf("%s", p.Header.Get("Location"))
		}
	}},
	{"4.11", "no one is redirected without a question", func(t *testing.T, w *world) {
		w.refused(t, w.request("prompt", "none"), "interaction_required")
		b := w.browser()
		b.allow(w.request(), w.operator.Email)
		if p := b.get("/oauth/authorize?" + w.request().Encode()); p.StatusCode != 200 || !strings.Contains(p.body, `value="deny"`) {
			t.Errorf("a second request is allowed by the first: %d %s", p.StatusCode, p.Header.Get("Location"))
		}
	}},
	{"4.12", "no redirect preserves the method and the body", func(t *testing.T, w *world) {
		b := w.browser()
		form := b.follow(b.get("/oauth/authorize?" + w.request().Encode()))
		entered := b.submit(form, "email", w.operator.Email, "password", password)
		consent := b.follow(entered)
		for _, p := range []*page{entered, b.submit(consent, "mode", "test", "decision", "deny"), b.submit(consent, "mode", "test", "decision", "allow")} {
			if p.StatusCode != http.StatusSeeOther || p.body != "" {
				t.Errorf("%s: %d %q", p.path, p.StatusCode, p.body)
			}
		}
	}},
	{"4.13", "what a client says of itself in the proxy's headers does not change the issuer", func(t *testing.T, w *world) {
		b := w.browser()
		for name, value := range map[string]string{"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example", "X-Original-URL": "/evil"} {
			b.header.Set(name, value)
		}
		if p := b.get("/.well-known/oauth-authorization-server"); strings.Contains(p.body, "evil") {
			t.Errorf("%s", p.body)
		}
		if p := b.get("/oauth/authorize?" + w.request("scope", "x").Encode()); w.sent(p).Get("iss") != w.server.URL {
			t.Errorf("%s", p.Header.Get("Location"))
		}
	}},
	{"4.14", "the second use of a refresh token ends what the first one has got", func(t *testing.T, w *world) {
		first := w.granted()
		thief := w.refresh(first.Refresh).is(t, 200, "")
		w.refresh(first.Refresh).is(t, 400, "invalid_grant") // the app
		w.refresh(thief.Refresh).is(t, 400, "invalid_grant")
		if _, ok := w.alive(thief.Access); ok {
			t.Error("the thief's access token works")
		}
		owner := w.granted()
		refreshed := w.refresh(owner.Refresh).is(t, 200, "")
		w.refresh(owner.Refresh).is(t, 400, "invalid_grant") // the thief
		w.refresh(refreshed.Refresh).is(t, 400, "invalid_grant")
	}},
	{"4.14", "a refresh token ends when it is not used, and is bound to its app", func(t *testing.T, w *world) {
		evil := w.newApp(w.tenant, func(*app.Registration) {})
		first := w.granted()
		w.refresh(first.Refresh, "client_id", evil.ID.String()).is(t, 400, "invalid_grant")
		w.pass(domain.RefreshIdle)
		w.refresh(first.Refresh).is(t, 400, "invalid_grant")
	}},
	{"4.15", "no app can pass for an operator", func(t *testing.T, w *world) {
		if strings.HasPrefix(w.client.ID.String(), "op_") || w.client.ID.String() == w.operator.ID.String() {
			t.Errorf("%s", w.client.ID)
		}
		w.token("grant_type", "client_credentials", "scope", "read:bookings").is(t, 400, "unsupported_grant_type")
		created, err := w.app.CreateApp(t.Context(), by, w.tenant.ID, app.Registration{
			Name: patch.Value(w.operator.ID.String()), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{redirect}),
		})
		if err != nil || created.ID.String() == w.operator.ID.String() || !strings.HasPrefix(created.ID.String(), "app_") {
			t.Errorf("%s %v", created.ID, err)
		}
	}},
	{"4.16", "pages for people are in no frame", func(t *testing.T, w *world) {
		b := w.browser()
		consent := b.signIn(w.request(), w.operator.Email)
		for _, p := range []*page{consent, b.get("/oauth/account"), b.get("/oauth/sign-in"), b.get("/oauth/second-factor"), b.get("/oauth/link/x")} {
			if p.Header.Get("X-Frame-Options") != "DENY" || p.StatusCode != 303 && !strings.Contains(p.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Errorf("%s: %v", p.path, p.Header)
			}
		}
	}},
	{"4.17", "no response is sent as a message between windows", func(t *testing.T, w *world) {
		if modes, _ := w.metadata(t)["response_modes_supported"].([]any); !slices.Equal(modes, []any{"query"}) {
			t.Errorf("%v", modes)
		}
		for _, mode := range []string{"web_message", "fragment", "form_post", "query.jwt"} {
			w.refused(t, w.request("response_mode", mode), "unsupported_response_mode")
		}
		if p := w.browser().signIn(w.request(), w.operator.Email); strings.Contains(p.body, "<script") {
			t.Error("the consent page has a script")
		}
	}},
}

func TestRFC9700(t *testing.T) {
	t.Parallel()
	hold(t, rfc9700)
}
