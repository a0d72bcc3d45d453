package oauth_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// rows returns the first column of the result of a statement run as the owner.
func (w *world) rows(sql string, args ...any) []string {
	w.t.Helper()
	found, err := w.owner().Query(w.t.Context(), sql, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestPlacesOfAccessTokens checks that the ninth access token of a grant replaces the first.
func TestPlacesOfAccessTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []tokens{w.granted()}
	for range domain.TokenPlaces {
		all = append(all, w.refresh(all[len(all)-1].Refresh).is(t, 200, ""))
	}
	stored := w.rows(`select encode(hash, 'hex') from oauth_access_tokens`)
	if len(stored) != domain.TokenPlaces {
		t.Errorf("%d rows", len(stored))
	}
	for _, a := range all[1:] {
		if _, ok := w.alive(a.Access); !ok {
			t.Error("one of the newest tokens does not work")
		}
	}
	if got := w.introspect(all[0].Access); got["active"] != false {
		t.Errorf("the oldest token: %v", got)
	}
}

// TestPlacesOfGrants checks that the fifty-first grant of an app by one operator at one tenant in one mode ends the first.
func TestPlacesOfGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	consent := func(mode string) tokens {
		p := b.submit(b.get("/oauth/authorize?"+w.request().Encode()), "tenant", w.tenant.ID.String(), "mode", mode, "decision", "allow")
		return w.exchange(w.sent(p).Get("code")).is(t, 200, "")
	}
	first, live := consent("test"), consent("live")
	for range domain.GrantPlaces - 1 {
		consent("test")
	}
	if _, ok := w.alive(first.Access); !ok {
		t.Fatal("the first of as many as there are places does not work")
	}
	consent("test")
	if _, ok := w.alive(first.Access); ok {
		t.Error("the first works although there are more than places")
	}
	if _, ok := w.alive(live.Access); !ok {
		t.Error("the other mode has lost one")
	}
}

// TestExpiredDataIsDeleted checks that only expired data is deleted: codes that were never exchanged, revoked grants, sessions,
// counts of attempts, drafts of forms.
func TestExpiredDataIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.browser().allow(w.request(), w.operator.Email) // never exchanged
	a := w.granted()
	revoked := w.granted()
	w.post("/oauth/revoke", url.Values{"token": {revoked.Refresh}, "client_id": {w.client.ID.String()}}).is(t, 200, "")
	w.browser().try("nobody@example.com", "wrong")
	if err := w.app.SaveDraft(t.Context(), w.app.FormProof(w.operator.ID), "abcdefghijklmnopqrst", domain.Draft{Page: "/admin"}); err != nil {
		t.Fatal(err)
	}
	counts := func() [5]int {
		var n [5]int
		for i, table := range []string{"oauth_grants", "oauth_access_tokens", "operator_sessions", "sign_in_attempts", "form_drafts"} {
			if err := w.owner().QueryRow(t.Context(), `select count(*) from `+table).Scan(&n[i]); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	sweep := func(what string, want [5]int) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- w.app.SweepOAuth(ctx) }()
		for end := time.Now().Add(30 * time.Second); counts() != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %v, want %v", what, counts(), want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := counts(); n[0] != 3 || n[1] != 2 || n[2] != 3 || n[3] == 0 || n[4] != 1 {
		t.Fatalf("%v", n)
	}
	w.pass(24*time.Hour + domain.CodeLifetime)
	sweep("after a day", [5]int{2, 2, 0, 0, 0})
	w.pass(30 * 24 * time.Hour)
	sweep("after a month", [5]int{1, 1, 0, 0, 0})
	if _, ok := w.alive(a.Access); !ok {
		t.Error("a grant that is not over is gone")
	}
	w.refresh(a.Refresh).is(t, 400, "invalid_grant") // thirty days without use
	w.pass(domain.GrantLifetime)
	sweep("after a year", [5]int{0, 0, 0, 0, 0})
}

// TestAGrantEndsAfterAYear checks that a grant ends a year after the consent, regardless of the number of refreshes.
func TestAGrantEndsAfterAYear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.granted()
	for range 12 {
		w.pass(29 * 24 * time.Hour)
		a = w.refresh(a.Refresh).is(t, 200, "")
	}
	w.pass(18 * 24 * time.Hour)
	w.refresh(a.Refresh).is(t, 400, "invalid_grant")
}

// introspect looks up a token like another process.
func (w *world) introspect(token string) (out map[string]any) {
	w.t.Helper()
	res, err := http.PostForm(w.server.URL+"/internal/v1/oauth/introspect", url.Values{"token": {token}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("%d %s: %v", res.StatusCode, raw, err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestIntrospection checks that other processes can look up an access token: RFC 7662.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.granted()
	got := w.introspect(a.Access)
	if got["active"] != true || got["scope"] != "read:bookings write:bookings" || got["client_id"] != w.client.ID.String() || got["sub"] != w.operator.ID.String() ||
		got["tenant_id"] != w.tenant.ID.String() || got["mode"] != "test" || got["exp"] == nil {
		t.Errorf("%v", got)
	}
	w.pass(time.Hour)
	for what, token := range map[string]string{"expired": a.Access, "a refresh token": a.Refresh, "unknown": domain.NewAccessToken(), "nothing": ""} {
		if got := w.introspect(token); len(got) != 1 || got["active"] != false {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestAuditLogRecordsSignInsAndGrants checks that the audit log records who consented, who ended a grant and why, and who signed
// in.
func TestAuditLogRecordsSignInsAndGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.granted()
	w.refresh(a.Refresh).is(t, 200, "")
	w.refresh(a.Refresh).is(t, 400, "invalid_grant")
	lines := w.rows(`select action || ' by ' || actor || ' ' || coalesce(after->>'reason', '') from audit_log order by seq`)
	operator, app := w.operator.ID.String(), w.client.ID.String()
	for _, want := range []string{
		"operator.invite by cli ", "operator.join by " + operator + " ", "app.create by cli ", "operator.sign_in by " + operator + " ",
		"grant.create by " + operator + " ", "grant.revoke by " + app + " refresh_token_reused",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is missing in %q", want, lines)
		}
	}
	for _, line := range w.rows(`select audit_log::text from audit_log`) {
		for _, secret := range []string{a.Access, a.Refresh, password, verifier} {
			if strings.Contains(line, secret) {
				t.Errorf("the log holds a secret: %s", line)
			}
		}
	}
}

// FuzzAuthorize checks that no input of an app or a stranger makes the server fail.
func FuzzAuthorize(f *testing.F) {
	f.Add("response_type=code&client_id=x&redirect_uri=https%3A%2F%2Fapp.example%2Fcallback&scope=a&state=%00")
	f.Add("client_id=%zz&&==&prompt=none&scope=%ff&request_uri=urn:ietf:params:oauth:request_uri:x")
	f.Add("response_mode=form_post&audience=x&registration=y&request=e30.e30.&claims=%7B")
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, raw string) {
		w.t = t
		query := strings.Map(func(r rune) rune {
			if r <= ' ' || r == '#' || r == 0x7f {
				return -1
			}
			return r
		}, strings.ReplaceAll(raw, "client_id=x", "client_id="+w.client.ID.String()))
		if !validQuery(query) {
			return
		}
		p := w.browser().get("/oauth/authorize?" + query)
		if to := p.Header.Get("Location"); p.StatusCode >= 500 || to != "" && !strings.HasPrefix(to, "/oauth/sign-in?") && !allowed(w.client, to) {
			t.Errorf("%q: %d %s", query, p.StatusCode, to)
		}
	})
}

func validQuery(q string) bool {
	_, err := url.ParseRequestURI("/oauth/authorize?" + q)
	return err == nil && len(q) < 8000
}

// allowed reports whether an address is a registered redirect URI with a response appended.
func allowed(a domain.App, to string) bool {
	i := strings.LastIndexAny(to, "?&")
	for ; i > 0; i = strings.LastIndexAny(to[:i], "?&") {
		if a.Redirects(to[:i]) {
			return true
		}
	}
	return false
}

// FuzzToken checks that the token endpoint responds to any input with an error of RFC 6749.
func FuzzToken(f *testing.F) {
	f.Add("grant_type=authorization_code&code=svc_ac_x&client_id=x&code_verifier=y")
	f.Add("grant_type=refresh_token&refresh_token=svc_rt_" + strings.Repeat("0", 58) + "&client_id=x&scope=%00")
	f.Add("grant_type=&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion=e30.e30.")
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, raw string) {
		w.t = t
		form, err := url.ParseQuery(strings.ReplaceAll(raw, "client_id=x", "client_id="+w.client.ID.String()))
		if err != nil {
			return
		}
		if a := w.post("/oauth/token", form); a.Status != 400 && a.Status != 401 || a.Error == "" || a.Access != "" {
			t.Errorf("%q: %+v", raw, a)
		}
	})
}

// TestFactorsAreResealed checks that second factors are encrypted again under a new key, after which the old key is not needed.
// A repetition changes nothing.
func TestFactorsAreResealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := app.NewFactor()
	code := func() string {
		c, err := totp.GenerateCode(secret, w.now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := w.app.SetFactor(t.Context(), by, w.operator.ID, secret, code()); err != nil {
		t.Fatal(err)
	}
	box := func(keys string) *crypt.Box {
		b, err := crypt.NewBox(keys)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, second := "k1:"+strings.Repeat("cd", 32), "k2:"+strings.Repeat("ef", 32)
	for _, want := range []string{"operators: 1 encrypted again\n", "operators: 0 encrypted again\n"} {
		var out strings.Builder
		if err := store.ResealFactors(t.Context(), w.db.Worker, box(second+","+first), &out); err != nil || out.String() != want {
			t.Errorf("%q: %v", out.String(), err)
		}
	}
	var out strings.Builder
	if err := store.ResealFactors(t.Context(), w.db.Worker, box("k3:"+strings.Repeat("12", 32)), &out); err == nil || !strings.Contains(out.String(), w.operator.ID.String()) {
		t.Errorf("without the key: %q %v", out.String(), err)
	}
	w.app.Box = box(second)
	w.pass(time.Minute)
	if _, err := w.app.SecondFactor(t.Context(), app.Factor{Operator: w.operator.ID, Version: w.versionOf(w.operator.ID), Code: code(), By: by}); err != nil {
		t.Error(err)
	}
}

// TestRevokedWhileItIsRefreshed checks that a grant that is revoked while its token is refreshed ends, in either order, and that no
// token outlives it.
func TestRevokedWhileItIsRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 10 {
		a := w.granted()
		var refreshed tokens
		var both sync.WaitGroup
		both.Go(func() { refreshed = w.refresh(a.Refresh) })
		both.Go(func() {
			w.post("/oauth/revoke", url.Values{"token": {a.Refresh}, "client_id": {w.client.ID.String()}}).is(t, 200, "")
		})
		both.Wait()
		last := a
		if refreshed.Status == 200 {
			last = refreshed
		} else {
			refreshed.is(t, 400, "invalid_grant")
		}
		for _, access := range []string{a.Access, last.Access} {
			if _, ok := w.alive(access); ok {
				t.Error("a token works after its grant was revoked")
			}
		}
		w.refresh(last.Refresh).is(t, 400, "invalid_grant")
	}
}

// TestScriptsOfPages checks that scripts of the app's own pages can read the responses of the token endpoint, including errors.
// Scripts of other pages, and of other apps' pages, cannot. No script can read the pages for people.
func TestScriptsOfPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const own, others = "https://till.example", "https://other.example"
	w.newApp(w.tenant, func(p *app.Registration) { p.Origins = patch.Value([]string{others}) })
	if _, _, err := w.app.UpdateApp(t.Context(), by, w.client.ID, app.Registration{Origins: patch.Value([]string{"https://a.example", own})}); err != nil {
		t.Fatal(err)
	}
	first := w.granted()
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {w.client.ID.String()}, "refresh_token": {first.Refresh}}
	open := func(path, origin string, form url.Values, status int) bool {
		t.Helper()
		b := w.browser()
		b.header.Set("Origin", origin)
		b.header.Set("Content-Type", "application/x-www-form-urlencoded")
		p := b.do(http.MethodPost, path, form)
		if p.StatusCode != status || p.Header.Get("Access-Control-Allow-Credentials") != "" || !slices.Contains(p.Header["Vary"], "Origin") && path != "/oauth/sign-in" {
			t.Errorf("%s from %s: %d %v %s", path, origin, p.StatusCode, p.Header, p.body)
		}
		allowed := p.Header.Get("Access-Control-Allow-Origin")
		return allowed != "" && allowed == origin
	}
	if !open("/oauth/token", own, form, 200) || !open("/oauth/token", own, form, 400) || !open("/oauth/revoke", own, url.Values{"client_id": form["client_id"], "token": {"x"}}, 200) {
		t.Error("a page of the app cannot read")
	}
	for _, origin := range []string{others, "null", own + ".evil.example", "https://TILL.example"} {
		if open("/oauth/token", origin, form, 400) {
			t.Errorf("%s may read", origin)
		}
	}
	if twice := (url.Values{"client_id": {"x", "y"}}); !open("/oauth/token", own, twice, 400) || open("/oauth/token", "https://evil.example", twice, 400) {
		t.Error("a refusal that names no app is for registered origins")
	}
	form.Set("client_id", domain.NewAppID().String())
	if open("/oauth/token", own, form, 401) {
		t.Error("the response to an unknown app may be read")
	}
	if open("/oauth/sign-in", own, url.Values{}, 403) {
		t.Error("a page for people may be read")
	}
	for origin, want := range map[string]bool{own: true, others: true, "https://evil.example": false, "": false, "{}": false} {
		if got, err := w.app.OriginRegistered(t.Context(), origin); err != nil || got != want {
			t.Errorf("%q is registered: %v %v", origin, got, err)
		}
	}
	if _, _, err := w.app.DeleteApp(t.Context(), by, w.client.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := w.app.OriginRegistered(t.Context(), own); err != nil || got {
		t.Errorf("after the app was deleted: %v %v", got, err)
	}
}

// TestMetrics checks that attempts to sign in are counted by outcome and ended grants by reason, once each.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.granted()
	w.refresh(first.Refresh).is(t, 200, "")
	w.refresh(first.Refresh).is(t, 400, "invalid_grant")
	w.refresh(first.Refresh).is(t, 400, "invalid_grant")
	for range domain.AccountThrottle.Free + 1 {
		w.browser().try(w.operator.Email, "not my password")
	}
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			if labels := m.GetLabel(); len(labels) > 0 {
				name = labels[0].GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"ok": 1, "wrong": float64(domain.AccountThrottle.Free), "delayed": 1, "failed": 0, "passwords_waiting": 0,
		"operator": 0, "app": 0, "code_reused": 0, "refresh_token_reused": 1, "operator_disabled": 0, "membership_ended": 0, "too_many_grants": 0,
		"address_proven": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
