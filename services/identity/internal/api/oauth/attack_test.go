package oauth_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// inParallel runs n calls in parallel and returns their responses.
func inParallel(n int, call func() tokens) []tokens {
	out := make([]tokens, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			out[i] = call()
		})
	}
	close(start)
	wg.Wait()
	return out
}

// winners returns the responses with tokens. Every other response must be invalid_grant.
func winners(t *testing.T, all []tokens) (won []tokens) {
	t.Helper()
	for _, a := range all {
		if a.Status == 200 {
			won = append(won, a)
		} else {
			a.is(t, 400, "invalid_grant")
		}
	}
	return won
}

// TestACodeWorksOnce checks that a code is exchanged once. If its app sends it again, with the verifier, the tokens from the code
// end. A stranger who only saw the code cannot cause this: OAuth 2.1, section 4.1.3; RFC 9700, section 4.5.
func TestACodeWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newApp(w.tenant, func(*app.Registration) {})
	code := w.browser().allow(w.request(), w.operator.Email).Get("code")
	a := w.exchange(code).is(t, 200, "")
	for _, stranger := range [][]string{{"code_verifier", ""}, {"code_verifier", strings.Repeat("x", 43)}, {"client_id", other.ID.String()}} {
		w.exchange(code, stranger...).is(t, 400, "invalid_grant")
	}
	if _, ok := w.alive(a.Access); !ok {
		t.Fatal("a stranger's replay has ended the grant")
	}
	w.exchange(code).is(t, 400, "invalid_grant")
	if _, ok := w.alive(a.Access); ok {
		t.Error("the access token works after the code came twice")
	}
	w.refresh(a.Refresh).is(t, 400, "invalid_grant")
}

// TestParallelExchangesOfACode checks that of 20 parallel exchanges of one code, exactly one succeeds and none is a server error. The code
// then counts as reused.
func TestParallelExchangesOfACode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.browser().allow(w.request(), w.operator.Email).Get("code")
	won := winners(t, inParallel(20, func() tokens { return w.exchange(code) }))
	if len(won) != 1 {
		t.Fatalf("%d exchanges have won", len(won))
	}
	if _, ok := w.alive(won[0].Access); ok {
		t.Error("the access token works although the code came twice")
	}
}

// TestACodeEnds checks that a code expires after five minutes.
func TestACodeEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.browser().allow(w.request(), w.operator.Email).Get("code")
	w.pass(domain.CodeLifetime)
	w.exchange(code).is(t, 400, "invalid_grant")
}

// TestRefreshTokensRotate checks that an old refresh token is rejected immediately and ends its family: RFC 9700, section 4.14.2.
// Of 40 parallel requests, exactly one succeeds.
func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.granted()
	second := w.refresh(first.Refresh).is(t, 200, "")
	third := w.refresh(second.Refresh).is(t, 200, "")
	other := w.newApp(w.tenant, func(*app.Registration) {})
	w.refresh(first.Refresh, "client_id", other.ID.String()).is(t, 400, "invalid_grant")
	if _, ok := w.alive(third.Access); !ok {
		t.Fatal("another app has ended the family")
	}
	w.refresh(first.Refresh).is(t, 400, "invalid_grant") // two generations old
	for _, a := range []tokens{first, second, third} {
		if _, ok := w.alive(a.Access); ok {
			t.Error("an access token of the family works")
		}
	}
	w.refresh(third.Refresh).is(t, 400, "invalid_grant")

	parallel := w.granted()
	won := winners(t, inParallel(40, func() tokens { return w.refresh(parallel.Refresh) }))
	if len(won) != 1 {
		t.Errorf("%d of 40 have won", len(won))
	}
}

// TestReuseLeeway checks that within its leeway an app gets the same successor for the previous token, and for no other.
func TestReuseLeeway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client = w.newApp(w.tenant, func(p *app.Registration) { p.ReuseLeeway = patch.Value(10) })
	first := w.granted()
	won := winners(t, inParallel(40, func() tokens { return w.refresh(first.Refresh) }))
	if len(won) != 40 {
		t.Fatalf("%d of 40 got a response", len(won))
	}
	for _, a := range won {
		if a.Access != won[0].Access || a.Refresh != won[0].Refresh || a.Scope != won[0].Scope || a.ExpiresIn < 3590 || a.ExpiresIn > 3600 {
			t.Errorf("%+v, another one got %+v", a, won[0])
		}
	}
	second := w.refresh(won[0].Refresh).is(t, 200, "")
	w.refresh(first.Refresh).is(t, 400, "invalid_grant") // older than the one before
	if _, ok := w.alive(second.Access); ok {
		t.Error("the family lives on after a token that was older than the one before")
	}
	late := w.granted()
	next := w.refresh(late.Refresh).is(t, 200, "")
	w.pass(10 * time.Second)
	w.refresh(late.Refresh).is(t, 400, "invalid_grant")
	if _, ok := w.alive(next.Access); ok {
		t.Error("the family lives on after the leeway")
	}
}

// TestSealedSuccessorsExpire checks that encrypted tokens are retained no longer than the leeway.
func TestSealedSuccessorsExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client = w.newApp(w.tenant, func(p *app.Registration) { p.ReuseLeeway = patch.Value(1) })
	w.refresh(w.granted().Refresh).is(t, 200, "")
	sealed := func() (n int) {
		if err := w.owner().QueryRow(t.Context(), `select count(*) from oauth_grants where successor is not null`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sealed(); n != 1 {
		t.Fatalf("%d sealed", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.app.SweepOAuth(ctx) }()
	w.pass(time.Minute)
	for end := time.Now().Add(30 * time.Second); sealed() > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("sealed tokens stay")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestScopesOfARefresh checks that a refresh can reduce the scopes of its access token, but never extend them: RFC 6749, section
// 6.
func TestScopesOfARefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.granted()
	w.refresh(a.Refresh, "scope", "read:bookings payments:write").is(t, 400, "invalid_scope")
	restricted := w.refresh(a.Refresh, "scope", "read:bookings").is(t, 200, "")
	if scopes, _ := w.alive(restricted.Access); scopes != "read:bookings" || restricted.Scope != scopes {
		t.Errorf("%q, the response says %q", scopes, restricted.Scope)
	}
	if whole := w.refresh(restricted.Refresh).is(t, 200, ""); whole.Scope != "read:bookings write:bookings" {
		t.Errorf("%q", whole.Scope)
	}
}

// TestRolesBoundScopes checks that a role limits the scopes that its operator can grant, at consent and afterwards. If the operator
// loses scopes, their apps also lose them.
func TestRolesBoundScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.invite(w.tenant, "lee@example.com", "viewer")
	b := w.browser()
	consent := b.signIn(w.request(), "lee@example.com")
	if !strings.Contains(consent.body, "Your role as viewer of Boats does not allow: write:bookings.") {
		t.Errorf("%s", consent.body)
	}
	got := w.sent(b.submit(consent, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow"))
	if a := w.exchange(got.Get("code")).is(t, 200, ""); a.Scope != "read:bookings" {
		t.Errorf("%q", a.Scope)
	}
	if got := w.sent(b.get("/oauth/authorize?" + w.request("scope", "write:bookings").Encode())); got.Get("error") != "access_denied" {
		t.Errorf("%v", got)
	}
	w.invite(w.tenant, "kim@example.com", "admin")
	a := w.exchange(w.browser().allow(w.request(), "kim@example.com").Get("code")).is(t, 200, "")
	before := w.principal(a.Access).Version
	if _, err := w.app.SetRole(ctx, by, app.MemberRef{Tenant: w.tenant.ID, Email: "kim@example.com"}, "viewer"); err != nil {
		t.Fatal(err)
	}
	if scopes, ok := w.alive(a.Access); scopes != "read:bookings" || !ok || w.principal(a.Access).Version <= before {
		t.Errorf("%q, version %d then %d", scopes, before, w.principal(a.Access).Version)
	}
	if again := w.refresh(a.Refresh).is(t, 200, ""); again.Scope != "read:bookings" {
		t.Errorf("%q", again.Scope)
	} else if a = again; false {
		return
	}
	if _, err := w.app.RemoveOperator(ctx, by, app.MemberRef{Tenant: w.tenant.ID, Email: "kim@example.com"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.alive(a.Access); ok {
		t.Error("the token works after its operator has left")
	}
	w.refresh(a.Refresh).is(t, 400, "invalid_grant")
}

// TestWhatEndsAGrant checks what ends a grant and its tokens: the operator is disabled, the app loses scopes or is deleted, or
// the app or an operator revokes it.
func TestWhatEndsAGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	other := w.newApp(w.tenant, func(*app.Registration) {})
	a := w.granted()
	w.post("/oauth/revoke", url.Values{"token": {a.Refresh}, "client_id": {other.ID.String()}}).is(t, 200, "")
	w.post("/oauth/revoke", url.Values{"token": {"nonsense"}, "client_id": {w.client.ID.String()}}).is(t, 200, "")
	w.post("/oauth/revoke", url.Values{"client_id": {w.client.ID.String()}}).is(t, 400, "invalid_request")
	if _, ok := w.alive(a.Access); !ok {
		t.Fatal("another app has revoked it")
	}
	w.post("/oauth/revoke", url.Values{"token": {a.Refresh}, "client_id": {w.client.ID.String()}}).is(t, 200, "")
	if _, ok := w.alive(a.Access); ok {
		t.Error("the app has revoked its refresh token, and the access token works")
	}
	b := w.granted()
	w.post("/oauth/revoke", url.Values{"token": {b.Access}, "client_id": {w.client.ID.String()}, "token_type_hint": {"access_token"}}).is(t, 200, "")
	w.refresh(b.Refresh).is(t, 400, "invalid_grant")

	c := w.granted()
	if _, _, err := w.app.UpdateApp(ctx, by, w.client.ID, app.Registration{Scopes: patch.Value("read:bookings")}); err != nil {
		t.Fatal(err)
	}
	if scopes, ok := w.alive(c.Access); scopes != "read:bookings" || !ok {
		t.Errorf("%q %v", scopes, ok)
	}
	code := w.browser().allow(w.request("scope", "read:bookings"), w.operator.Email).Get("code")
	if _, _, err := w.app.DisableOperator(ctx, by, w.operator.Email); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.alive(c.Access); ok {
		t.Error("the token works after its operator was disabled")
	}
	w.refresh(c.Refresh).is(t, 400, "invalid_grant")
	w.exchange(code).is(t, 400, "invalid_grant")
	if _, err := w.app.EnableOperator(ctx, by, w.operator.Email); err != nil {
		t.Fatal(err)
	}
	w.refresh(c.Refresh).is(t, 400, "invalid_grant")
	d := w.exchange(w.browser().allow(w.request("scope", "read:bookings"), w.operator.Email).Get("code")).is(t, 200, "")
	if _, _, err := w.app.DeleteApp(ctx, by, w.client.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.alive(d.Access); ok {
		t.Error("the token works after its app was deleted")
	}
	w.refresh(d.Refresh).is(t, 401, "invalid_client")
}

// TestTenantsDoNotMix checks that an unpublished app acts only for the operators of its own tenant, and that no operator can
// choose a tenant of which they are not a member.
func TestTenantsDoNotMix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w.newTenant("Elsewhere")
	w.invite(elsewhere, "eve@example.com", "owner")
	b := w.browser()
	form := b.follow(b.get("/oauth/authorize?" + w.request().Encode()))
	if got := w.sent(b.follow(b.submit(form, "email", "eve@example.com", "password", password))); got.Get("error") != "access_denied" {
		t.Errorf("%v", got)
	}
	if _, _, err := w.app.UpdateApp(t.Context(), by, w.client.ID, app.Registration{Published: patch.Value(true)}); err != nil {
		t.Fatal(err)
	}
	consent := b.get("/oauth/authorize?" + w.request().Encode())
	for _, tenant := range []string{w.tenant.ID.String(), "", "tn_x"} {
		if p := b.submit(consent, "tenant", tenant, "mode", "test", "decision", "allow"); p.StatusCode != 422 {
			t.Errorf("tenant %q: %d", tenant, p.StatusCode)
		}
	}
	if p := b.submit(consent, "tenant", elsewhere.ID.String(), "mode", "both", "decision", "allow"); p.StatusCode != 422 {
		t.Errorf("another mode: %d", p.StatusCode)
	}
	a := w.exchange(w.sent(b.submit(consent, "tenant", elsewhere.ID.String(), "mode", "test", "decision", "allow")).Get("code")).is(t, 200, "")
	if p := w.principal(a.Access); p.TenantID != elsewhere.ID || p.Livemode {
		t.Errorf("%+v", p)
	}
	if _, _, err := w.app.UpdateApp(t.Context(), by, w.client.ID, app.Registration{Published: patch.Value(false)}); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.alive(a.Access); ok {
		t.Error("the token works at another tenant after the app is not published any more")
	}
}

// TestForgedForms checks that a form is accepted only from the browser and for the request that it was shown for. A decision cannot
// come from any other source: RFC 9700, sections 4.7 and 4.16.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	victim, attacker := w.browser(), w.browser()
	consent := victim.signIn(w.request(), w.operator.Email)
	w.invite(w.tenant, "eve@example.com", "owner")
	foreign := attacker.signIn(w.request(), "eve@example.com")
	refused := func(what string, p *page) {
		t.Helper()
		if p.StatusCode < 400 || p.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", what, p.StatusCode, p.Header.Get("Location"))
		}
	}
	choice := []string{"tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow"}
	refused("the form of another browser", victim.submit(foreign, choice...))
	refused("a form of another request", victim.submit(consent, append(choice, "form", formOf(victim.get("/oauth/authorize?"+w.request("scope", "read:bookings").Encode())))...))
	refused("no form token", victim.submit(consent, append(choice, "form", "")...))
	victim.header.Set("Sec-Fetch-Site", "cross-site")
	refused("a form sent by another site", victim.submit(consent, choice...))
	victim.header.Del("Sec-Fetch-Site")
	victim.header.Set("Origin", "https://evil.example")
	refused("a form of another origin", victim.submit(consent, choice...))
	victim.header.Del("Origin")
	w.pass(time.Hour)
	refused("an old form", victim.submit(consent, choice...))
	fresh := victim.get("/oauth/authorize?" + w.request().Encode())
	if got := w.sent(victim.submit(fresh, choice...)); got.Get("code") == "" {
		t.Errorf("%v", got)
	}
	denied := w.sent(victim.submit(victim.get("/oauth/authorize?"+w.request().Encode()), "tenant", w.tenant.ID.String(), "mode", "test", "decision", "deny"))
	if denied.Get("error") != "access_denied" || denied.Has("code") {
		t.Errorf("%v", denied)
	}
	login := w.browser()
	form := login.follow(login.get("/oauth/authorize?" + w.request().Encode()))
	refused("a sign-in with another browser's form", w.browser().submit(form, "email", w.operator.Email, "password", password))
}

func formOf(p *page) string {
	for _, m := range hidden.FindAllStringSubmatch(p.body, -1) {
		if m[1] == "form" {
			return m[2]
		}
	}
	return ""
}

// TestHeadersOfPages checks that every page forbids frames, caching, and unneeded features, and that scripts cannot read cookies.
func TestHeadersOfPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	pages := []*page{
		b.get("/oauth/authorize"), b.get("/oauth/sign-in?" + w.request().Encode()), b.get("/oauth/link/x"),
		b.get("/oauth/authorize?" + w.request().Encode()), b.get("/oauth/authorize?" + w.request("scope", "x").Encode()), b.signIn(w.request(), w.operator.Email),
	}
	for _, p := range pages {
		h := p.Header
		csp := h.Get("Content-Security-Policy")
		if p.StatusCode != http.StatusSeeOther && (!strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'")) {
			t.Errorf("%s: policy %q", p.path, csp)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", p.path, h)
		}
		for _, c := range p.Cookies() {
			if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" {
				t.Errorf("%s: cookie %s", p.path, c)
			}
		}
	}
}

// TestSessions checks that a session gets a new token at sign-in, so a planted token is useless. prompt=login requests the
// password again.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	first := b.cookie("holdfast_session")
	again := b.follow(b.get("/oauth/authorize?" + w.request("prompt", "login", "login_hint", "dana@example.com").Encode()))
	if !strings.Contains(again.path, "/oauth/sign-in") || !strings.Contains(again.body, `value="dana@example.com"`) {
		t.Fatalf("%s %s", again.path, again.body)
	}
	consent := b.follow(b.submit(again, "email", w.operator.Email, "password", password))
	if consent.StatusCode != 200 || b.cookie("holdfast_session") == first || first == "" {
		t.Errorf("%d, session %q", consent.StatusCode, first)
	}
	planted := w.browser()
	planted.plant("holdfast_session", first)
	if p := planted.get("/oauth/authorize?" + w.request().Encode()); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the session before works: %d", p.StatusCode)
	}
	w.sent(b.submit(consent, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow"))
	if p := b.get("/oauth/authorize?" + w.request("prompt", "login", "login_hint", "dana@example.com").Encode()); p.StatusCode != http.StatusSeeOther {
		t.Error("prompt=login shows the form once for two requests")
	}
	sessions, err := w.app.Sessions(t.Context(), w.operator.ID)
	if err != nil || len(sessions) != 1 || sessions[0].Address != "198.51.100.7" {
		t.Errorf("%+v: %v", sessions, err)
	}
	if n, err := w.app.EndSessions(t.Context(), w.operator.ID, sessions[0].ID, nil); err != nil || n != 1 {
		t.Errorf("%d: %v", n, err)
	}
	if p := b.get("/oauth/authorize?" + w.request().Encode()); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the ended session works: %d", p.StatusCode)
	}
}
