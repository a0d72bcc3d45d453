package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// registered is a response of the registration endpoint.
type registered struct {
	status      int
	header      http.Header
	body        string
	ID          string   `json:"client_id"`
	IssuedAt    int64    `json:"client_id_issued_at"`
	Name        string   `json:"client_name"`
	Redirects   []string `json:"redirect_uris"`
	AuthMethod  string   `json:"token_endpoint_auth_method"`
	Grants      []string `json:"grant_types"`
	Responses   []string `json:"response_types"`
	Scope       string   `json:"scope"`
	Error       string   `json:"error"`
	Description string   `json:"error_description"`
}

// register registers an app from an address.
func (w *world) register(body, address string) (out registered) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.server.URL+"/oauth/register", strings.NewReader(body))
	if err != nil {
		w.t.Error(err)
		return out
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {address}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Error(err)
		return out
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Error(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Errorf("%s: %v", raw, err)
	}
	out.status, out.header, out.body = res.StatusCode, res.Header, string(raw)
	return out
}

const assistant = `{"client_name":"Claude","redirect_uris":["https://claude.example/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"scope":"read:bookings write:bookings","logo_uri":"https://x.example/l.png"}`

// requestOf is the authorization request of an app that registered itself.
func (w *world) requestOf(a registered, pairs ...string) url.Values {
	return w.request(append([]string{"client_id", a.ID, "redirect_uri", a.Redirects[0]}, pairs...)...)
}

// TestRegistration checks the whole life of an app that registers itself: the response, the warning on each consent, and its tokens.
func TestRegistration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.register(assistant, "198.51.100.1")
	if a.status != 201 || !strings.HasPrefix(a.ID, "app_") || a.IssuedAt < w.now().Unix()-60 || a.Name != "Claude" || a.AuthMethod != "none" ||
		!slices.Equal(a.Redirects, []string{"https://claude.example/callback"}) || !slices.Equal(a.Grants, []string{"authorization_code", "refresh_token"}) ||
		!slices.Equal(a.Responses, []string{"code"}) || a.Scope != "read:bookings write:bookings" || strings.Contains(a.body, "secret") || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	b := w.browser()
	for round := range 2 { // consent and its warning come every time
		var p *page
		if round == 0 {
			p = b.signIn(w.requestOf(a), w.operator.Email)
		} else {
			p = b.get("/oauth/authorize?" + w.requestOf(a).Encode())
		}
		if !strings.Contains(p.body, "registered itself, and nobody has verified its name") || !strings.Contains(p.body, "claude.example") || strings.Contains(p.body, "published by") {
			t.Fatalf("%d %s", p.StatusCode, p.body)
		}
		code := w.sent(b.submit(p, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
		granted := w.exchange(code, "client_id", a.ID).is(t, 200, "")
		if scopes, ok := w.alive(granted.Access); !ok || scopes != "read:bookings write:bookings" {
			t.Errorf("%q %t", scopes, ok)
		}
		w.refresh(granted.Refresh, "client_id", a.ID).is(t, 200, "")
	}
	if p := w.browser().signIn(w.request(), w.operator.Email); strings.Contains(p.body, "registered itself") {
		t.Error("the warning is on the consent page of an app that an operator created")
	}
	p := b.get("/oauth/authorize?" + w.requestOf(a, "redirect_uri", "https://claude.example/callback/x").Encode())
	if p.StatusCode != 400 || !strings.Contains(p.body, "redirect_uri is not one of those") {
		t.Errorf("another redirect URI: %d", p.StatusCode)
	}
	grants, err := w.app.Grants(t.Context(), w.tenant.ID, nil)
	if err != nil || len(grants) != 2 || grants[0].AppName != "Claude" {
		t.Errorf("the operator sees %+v, %v", grants, err)
	}
}

// TestRegistrationDefaults checks what the server sets if a client sends only its redirect URI.
func TestRegistrationDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.register(`{"redirect_uris":["http://localhost:33418/callback","http://127.0.0.1/cb"],"client_id":"app_x","client_id_issued_at":7}`, "198.51.100.1")
	if a.status != 201 || a.Name != "localhost" || a.AuthMethod != "none" || a.Scope != strings.Join(proto.Scopes, " ") || a.ID == "app_x" || a.IssuedAt == 7 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if p := w.browser().signIn(w.requestOf(a), w.operator.Email); !strings.Contains(p.body, "localhost:33418") {
		t.Errorf("%d %s", p.StatusCode, p.body)
	}
	b := w.browser()
	p := b.submit(b.signIn(w.requestOf(a, "scope", ""), w.operator.Email), "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")
	if got := w.exchange(w.sent(p).Get("code"), "client_id", a.ID).is(t, 200, ""); got.Scope != a.Scope {
		t.Errorf("without a scope: %q", got.Scope)
	}
	if got := w.sent(w.browser().get("/oauth/authorize?" + w.request("scope", "").Encode())); got.Get("error") != "invalid_scope" {
		t.Errorf("an app of a tenant without a scope: %v", got)
	}
	for uri, want := range map[string]int{"http://localhost:1/callback": 303, "http://localhost:1/other": 400, "http://localhost:1/cb": 400} {
		if p := w.browser().get("/oauth/authorize?" + w.requestOf(a, "redirect_uri", uri).Encode()); p.StatusCode != want {
			t.Errorf("%s: %d, want %d", uri, p.StatusCode, want)
		}
	}
}

// TestWrongRegistrations checks the errors of RFC 7591, section 3.2.2.
func TestWrongRegistrations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const uris = `"redirect_uris":["https://a.example/cb"]`
	for body, want := range map[string]string{
		`{}`:                   "invalid_redirect_uri",
		`{"redirect_uris":[]}`: "invalid_redirect_uri",
		`{"redirect_uris":["http://a.example/"]}`:                                                      "invalid_redirect_uri",
		`{"redirect_uris":["com.example.app:/cb"]}`:                                                    "invalid_redirect_uri",
		`{"redirect_uris":["javascript:alert(1)"]}`:                                                    "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/cb#x"]}`:                                                 "invalid_redirect_uri",
		`{"redirect_uris":["https://u@a.example/cb"]}`:                                                 "invalid_redirect_uri",
		`{"redirect_uris":["https://*.example/cb"]}`:                                                   "invalid_redirect_uri",
		`{"redirect_uris":["http://localhost.evil.example/cb"]}`:                                       "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/cb","/relative"]}`:                                       "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/` + strings.Repeat("x", 2000) + `"]}`:                    "invalid_redirect_uri",
		`{"redirect_uris":[` + strings.Repeat(`"https://a.example/cb",`, 20) + `"https://a.example"]}`: "invalid_redirect_uri",
		`{` + uris + `,"token_endpoint_auth_method":"client_secret_basic"}`:                            "invalid_client_metadata",
		`{` + uris + `,"grant_types":["implicit"]}`:                                                    "invalid_client_metadata",
		`{` + uris + `,"grant_types":["authorization_code","password"]}`:                               "invalid_client_metadata",
		`{` + uris + `,"grant_types":["refresh_token"]}`:                                               "invalid_client_metadata",
		`{` + uris + `,"response_types":["token"]}`:                                                    "invalid_client_metadata",
		`{` + uris + `,"scope":"admin openid"}`:                                                        "invalid_client_metadata",
		`{` + uris + `,"client_name":"a\nb"}`:                                                          "invalid_client_metadata",
		`{` + uris + `,"client_name":"` + strings.Repeat("x", 201) + `"}`:                              "invalid_client_metadata",
		`{` + uris + `,"client_name":7}`:                                                               "invalid_client_metadata",
		`[]`:                                                                                           "invalid_client_metadata",
		`{` + uris + `,"x":"` + strings.Repeat("x", 64<<10) + `"}`:                                     "invalid_client_metadata",
	} {
		if a := w.register(body, "198.51.100.1"); a.status != 400 || a.Error != want || a.Description == "" || a.ID != "" {
			t.Errorf("%.80s: %d %s", body, a.status, a.body)
		}
	}
	if got := w.rows(`select count(*)::text from oauth_apps where tenant_id is null`); got[0] != "0" {
		t.Errorf("%s rows", got[0])
	}
}

// TestRegistrationsOfANetwork checks that a network has at most 20 unused registrations, also if it registers in parallel: one more
// replaces its oldest one, and neither one of another network nor one that is used.
func TestRegistrationsOfANetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	used, other := w.register(assistant, "2001:db8:1:2::1"), w.register(assistant, "2001:db8:1:3::1")
	w.browser().allow(w.requestOf(used), w.operator.Email)
	var all sync.WaitGroup
	for i := range domain.NetworkPlaces + 10 {
		all.Go(func() {
			if a := w.register(assistant, fmt.Sprintf("2001:db8:1:2::%x", i+1)); a.status != 201 { // one /64
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	newest := w.register(assistant, "2001:db8:1:2::1")
	for range domain.NetworkPlaces {
		w.register(assistant, "2001:db8:1:2::2")
	}
	known := func(a registered) bool {
		return w.browser().get("/oauth/authorize?"+w.requestOf(a).Encode()).StatusCode == http.StatusSeeOther
	}
	if !known(used) || !known(other) || known(newest) {
		t.Errorf("known: used %t, of another network %t, replaced %t", known(used), known(other), known(newest))
	}
	if got := w.rows(`select count(*)::text from oauth_apps where network is not null and network like '2001:db8:1:2:%'`); got[0] != fmt.Sprint(domain.NetworkPlaces) {
		t.Errorf("%s unused registrations of one network", got[0])
	}
	if got := w.rows(`select coalesce(network, 'none') from oauth_apps where used_at is not null`); !slices.Equal(got, []string{"none"}) {
		t.Errorf("the network of a used app: %v", got)
	}
}

// TestUnusedRegistrationsGiveWay checks that a registration over the maximum replaces the oldest unused one, and none that is used.
func TestUnusedRegistrationsGiveWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	used := w.register(assistant, "198.51.100.1")
	granted := w.exchange(w.browser().allow(w.requestOf(used), w.operator.Email).Get("code"), "client_id", used.ID).is(t, 200, "")
	oldest, next := w.register(assistant, "198.51.100.2"), w.register(assistant, "198.51.100.3")
	if _, err := w.owner().Exec(t.Context(), `insert into oauth_apps (id, name, redirect_uris, scopes, published, reuse_leeway_seconds, network, created_at, updated_at)
		select gen_random_uuid(), 'flood', '{https://f.example/}', '{read:bookings}', true, 0, 'n' || n, now() + '1 second', now() from generate_series(1, $1) n`,
		domain.RegisteredPlaces-2); err != nil {
		t.Fatal(err)
	}
	newest := w.register(assistant, "198.51.100.4")
	known := func(a registered) bool {
		return w.browser().get("/oauth/authorize?"+w.requestOf(a).Encode()).StatusCode == http.StatusSeeOther
	}
	if newest.status != 201 || known(oldest) || !known(next) || !known(newest) || !known(used) {
		t.Errorf("%d, known: oldest %t, next %t, newest %t, used %t", newest.status, known(oldest), known(next), known(newest), known(used))
	}
	if _, ok := w.alive(granted.Access); !ok {
		t.Error("the token of a used app does not work")
	}
	if got := w.rows(`select count(*)::text from oauth_apps where network is not null`); got[0] != fmt.Sprint(domain.RegisteredPlaces) {
		t.Errorf("%s unused registrations", got[0])
	}
}

// sweep deletes what is over, as the background work does.
func (w *world) sweep() {
	w.t.Helper()
	err := w.db.Worker.SystemTx(w.t.Context(), func(ctx context.Context, tx pg.Tx) error {
		_, grants := store.SweepGrants(ctx, tx, w.now(), 1000)
		_, apps := store.SweepRegisteredApps(ctx, tx, w.now(), 1000)
		return errors.Join(grants, apps)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestRegistrationsExpire checks that an app is deleted an hour after its registration if nobody used it, and that one with a grant stays.
func TestRegistrationsExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unused, used := w.register(assistant, "198.51.100.1"), w.register(assistant, "198.51.100.1")
	granted := w.exchange(w.browser().allow(w.requestOf(used), w.operator.Email).Get("code"), "client_id", used.ID).is(t, 200, "")
	known := func() string { return strings.Join(w.rows(`select name from oauth_apps where tenant_id is null`), " ") }
	w.pass(domain.UnusedLifetime - time.Minute)
	w.sweep()
	if got := known(); got != "Claude Claude" {
		t.Errorf("before an hour: %q", got)
	}
	w.pass(2 * time.Minute)
	w.sweep()
	if got := known(); got != "Claude" {
		t.Errorf("after an hour: %q", got)
	}
	if p := w.browser().get("/oauth/authorize?" + w.requestOf(unused).Encode()); p.StatusCode != 400 || !strings.Contains(p.body, "client_id is missing or unknown") {
		t.Errorf("%d %s", p.StatusCode, p.body)
	}
	w.refresh(granted.Refresh, "client_id", used.ID).is(t, 200, "")
	if _, err := w.app.RevokeGrant(t.Context(), by, w.principal(granted.Access).GrantID, domain.ByOperator); err != nil {
		t.Fatal(err)
	}
	w.pass(29 * 24 * time.Hour)
	w.sweep()
	if got := known(); got != "Claude" {
		t.Errorf("29 days after the end of its grant: %q", got)
	}
	w.pass(2 * 24 * time.Hour)
	w.sweep()
	if got := known(); got != "" {
		t.Errorf("31 days after the end of its grant: %q", got)
	}
}

// TestGrantsOfRegisteredApps checks that one operator's grants to all apps that registered themselves share the places of one app.
func TestGrantsOfRegisteredApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	var first tokens
	for i := range domain.GrantPlaces + 1 {
		a := w.register(assistant, "198.51.100.1")
		p := b.submit(b.get("/oauth/authorize?"+w.requestOf(a).Encode()), "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")
		got := w.exchange(w.sent(p).Get("code"), "client_id", a.ID).is(t, 200, "")
		if i == 0 {
			first = got
		}
	}
	if _, ok := w.alive(first.Access); ok {
		t.Error("the oldest of one grant too many works")
	}
	if got := w.rows(`select count(*)::text from oauth_grants where revoked_at is null`); got[0] != fmt.Sprint(domain.GrantPlaces) {
		t.Errorf("%s grants", got[0])
	}
}

// TestRegisteredAppsAreManaged checks the commands of the platform's operators: list and delete, but not update.
func TestRegisteredAppsAreManaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.register(assistant, "198.51.100.1")
	granted := w.exchange(w.browser().allow(w.requestOf(a), w.operator.Email).Get("code"), "client_id", a.ID).is(t, 200, "")
	id, err := domain.ParseAppID(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.app.RegisteredApps(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].UsedAt == nil {
		t.Errorf("%+v, %v", list, err)
	}
	if apps, err := w.app.Apps(t.Context(), w.tenant.ID); err != nil || len(apps) != 1 || apps[0].ID == id {
		t.Errorf("the apps of the tenant: %+v, %v", apps, err)
	}
	if _, _, err := w.app.UpdateApp(t.Context(), by, id, app.Registration{Name: patch.Value("Holdfast")}); err == nil || !strings.Contains(err.Error(), "registered itself") {
		t.Errorf("update: %v", err)
	}
	if _, err := w.app.OwnApp(t.Context(), w.tenant.ID, id); err == nil {
		t.Error("a tenant owns the app")
	}
	if _, _, err := w.app.DeleteApp(t.Context(), by, id); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.alive(granted.Access); ok {
		t.Error("a token of a deleted app works")
	}
	w.refresh(granted.Refresh, "client_id", a.ID).is(t, 401, "invalid_client")
	if _, _, err := w.app.DeleteApp(t.Context(), by, id); err == nil {
		t.Error("a deleted app is deleted again")
	}
}

// TestResources checks that a token can be requested for the resource server only: RFC 8707.
func TestResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.server.URL
	for resource, ok := range map[string]bool{
		base: true, base + "/": true, base + "/mcp": true, base + "/api/v1": true, strings.ToUpper(base[:4]) + base[4:] + "/mcp": true,
		base + "/other": false, "https://other.example/mcp": false, base + "/mcp#x": false, "mcp": false, base + "/mcp?x": false,
	} {
		b := w.browser()
		b.signIn(w.request(), w.operator.Email)
		p := b.get("/oauth/authorize?" + w.request("resource", resource).Encode())
		if !ok {
			if got := w.sent(p); got.Get("error") != "invalid_target" || got.Get("state") == "" || got.Get("iss") == "" {
				t.Errorf("%s: %v", resource, got)
			}
			w.post("/oauth/par", w.request("resource", resource)).is(t, 400, "invalid_target")
			w.refresh("svc_rt_x", "resource", resource).is(t, 400, "invalid_target")
			continue
		}
		code := w.sent(b.submit(p, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
		granted := w.exchange(code, "resource", resource).is(t, 200, "")
		w.refresh(granted.Refresh, "resource", resource).is(t, 200, "")
	}
	two := w.request()
	two["resource"] = []string{base, "https://other.example"}
	w.post("/oauth/par", two).is(t, 400, "invalid_target")
	two["resource"] = []string{base, base + "/mcp"}
	w.post("/oauth/par", two).is(t, 201, "")
}

// TestResourceMetadata checks that each document of metadata names the resource from which its URL was derived (RFC 9728, sections 3.1 and
// 3.3), and that it leads a client from a 401 to the registration (RFC 8414).
func TestResourceMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"", "/api/v1", "/mcp", "/mcp/"} {
		var m struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal([]byte(w.browser().get("/.well-known/oauth-protected-resource"+path).body), &m); err != nil {
			t.Fatal(err)
		}
		if m.Resource != w.server.URL+path || !slices.Equal(m.Servers, []string{w.server.URL}) || !slices.Equal(m.Scopes, proto.Scopes) {
			t.Errorf("%q: %+v", path, m)
		}
		if pushed := w.post("/oauth/par", w.request("resource", m.Resource)); pushed.Status != 201 {
			t.Errorf("%q: the resource is not accepted: %d", path, pushed.Status)
		}
	}
	if body := w.browser().get("/.well-known/oauth-authorization-server").body; !strings.Contains(body, `"registration_endpoint":"`+w.server.URL+`/oauth/register"`) {
		t.Error(body)
	}
}

// TestRefreshFromTwoWindows checks that an app that registered itself gets the same tokens for a refresh token that two windows send, and
// that the grant ends if the token is sent after the leeway.
func TestRefreshFromTwoWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.register(assistant, "198.51.100.1")
	granted := w.exchange(w.browser().allow(w.requestOf(a), w.operator.Email).Get("code"), "client_id", a.ID).is(t, 200, "")
	first := w.refresh(granted.Refresh, "client_id", a.ID).is(t, 200, "")
	second := w.refresh(granted.Refresh, "client_id", a.ID).is(t, 200, "")
	if first.Refresh != second.Refresh || first.Access != second.Access {
		t.Error("the second window got other tokens")
	}
	w.pass(11 * time.Second)
	w.refresh(granted.Refresh, "client_id", a.ID).is(t, 400, "invalid_grant")
	w.refresh(first.Refresh, "client_id", a.ID).is(t, 400, "invalid_grant")
}

// TestRegisteredNames checks that an app that registers itself with the name of the platform is shown with its host instead.
func TestRegisteredNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, want := range map[string]string{"Claude Code (holdfast)": "claude.example", "Claude": "Claude"} {
		if a := w.register(strings.Replace(assistant, `"Claude"`, `"`+name+`"`, 1), "198.51.100.1"); a.status != 201 || a.Name != want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := w.register(strings.Replace(assistant, `"Claude"`, `"`+strings.Repeat("x", 61)+`"`, 1), "198.51.100.1"); a.status != 400 {
		t.Errorf("61 characters: %d", a.status)
	}
}
