package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const unverified = "The platform has not verified this app"

// foreign registers a published app of another tenant, and returns both.
func (w *world) foreign() (domain.Tenant, domain.App) {
	w.t.Helper()
	publisher := w.newTenant("Holdfast Platform")
	return publisher, w.newApp(publisher, func(p *app.Registration) { p.Name, p.Published = patch.Value("Command Line"), patch.Value(true) })
}

// setStatus suspends or otherwise changes a tenant.
func (w *world) setStatus(tenant domain.Tenant, action domain.TenantAction) {
	w.t.Helper()
	if _, _, err := w.app.ActOnTenant(w.t.Context(), by, tenant.ID, action, "test"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) verify(a domain.App, verified bool) {
	w.t.Helper()
	if _, _, err := w.app.VerifyApp(w.t.Context(), by, a.ID, verified); err != nil {
		w.t.Fatal(err)
	}
}

// TestUnverifiedPublisher checks that operators of other tenants see the publisher only of an app that the platform has verified, and a
// warning otherwise, and that a new name of the app or of its publisher ends the verification.
func TestUnverifiedPublisher(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	publisher, a := w.foreign()
	q := w.request("client_id", a.ID.String())
	warned := func(want bool, what string) {
		t.Helper()
		b := w.browser()
		signIn := b.follow(b.get("/oauth/authorize?" + q.Encode()))
		consent := b.follow(b.submit(signIn, "email", w.operator.Email, "password", password))
		for _, p := range []*page{signIn, consent} {
			if got := strings.Contains(p.body, unverified); got != want {
				t.Errorf("%s: %s: warning %t, want %t", what, p.path, got, want)
			}
		}
		if got := strings.Contains(consent.body, "published by"); got == want {
			t.Errorf("%s: the consent page names the publisher: %t", what, got)
		}
	}
	warned(true, "new app")
	w.verify(a, true)
	warned(false, "verified")
	w.verify(a, false)
	warned(true, "verification ended")
	w.verify(a, true)
	if _, _, err := w.app.UpdateApp(t.Context(), by, a.ID, app.Registration{Scopes: patch.Value("read:bookings,write:bookings")}); err != nil {
		t.Fatal(err)
	}
	warned(false, "verified, with other scopes")
	if _, _, err := w.app.UpdateApp(t.Context(), by, a.ID, app.Registration{RedirectURIs: patch.Value([]string{redirect, "https://other.example/cb"})}); err != nil {
		t.Fatal(err)
	}
	warned(true, "another redirect URI")
	w.verify(a, true)
	if _, _, err := w.app.UpdateTenant(t.Context(), by, publisher.ID, domain.TenantPatch{Name: patch.Value("Bank")}); err != nil {
		t.Fatal(err)
	}
	warned(true, "another name of the publisher")
	w.verify(w.client, false)
	if p := w.browser().signIn(w.request(), w.operator.Email); strings.Contains(p.body, unverified) || !strings.Contains(p.body, "published by") {
		t.Error("the consent page of the operator's own app has the warning")
	}
}

// TestPublisherEnds checks that a publisher's suspension and closing end what its apps have at other tenants: codes, access tokens and
// refreshes, and new requests.
func TestPublisherEnds(t *testing.T) {
	t.Parallel()
	for _, action := range []domain.TenantAction{domain.SuspendTenant, domain.CloseTenant} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			publisher, a := w.foreign()
			id := a.ID.String()
			granted := w.granted2(a)
			code := w.browser().allow(w.request("client_id", id), w.operator.Email).Get("code")
			before := w.principal(granted.Access).Version
			w.setStatus(publisher, action)
			if p := w.principal(granted.Access); !p.Revoked || p.Version <= before {
				t.Errorf("the access token works: revoked %t, version %d after %d", p.Revoked, p.Version, before)
			}
			redis, _ := w.app.Redis.(store.Redis)
			state, err := redis.Client.Get(t.Context(), "st:{"+w.tenant.ID.String()+"}:"+w.principal(granted.Access).GrantID.String()).Result()
			if err != nil || state == "" {
				t.Errorf("the gateways do not know the new version of the grant: %q %v", state, err)
			}
			if in, err := w.app.Introspect(t.Context(), granted.Access); err != nil || in.Active {
				t.Errorf("%+v %v", in, err)
			}
			w.refresh(granted.Refresh, "client_id", id).is(t, 400, "invalid_grant")
			w.exchange(code, "client_id", id).is(t, 400, "invalid_grant")
			if p := w.browser().get("/oauth/authorize?" + w.request("client_id", id).Encode()); p.StatusCode != 400 || !strings.Contains(p.body, "the publisher of the app is not active") {
				t.Errorf("%d %s", p.StatusCode, p.body)
			}
			if own := w.granted(); own.Access == "" {
				t.Error("the apps of another tenant ended too")
			}
		})
	}
}

// granted2 completes the whole flow as the owner, for another app.
func (w *world) granted2(a domain.App) tokens {
	w.t.Helper()
	id := a.ID.String()
	return w.exchange(w.browser().allow(w.request("client_id", id), w.operator.Email).Get("code"), "client_id", id).is(w.t, 200, "")
}

// TestSuspendedTenantConsent checks that no app gets a code for a suspended tenant, even if the page was shown before.
func TestSuspendedTenantConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, a := w.foreign()
	w.verify(a, true)
	b, q := w.browser(), w.request("client_id", a.ID.String())
	shown := b.signIn(q, w.operator.Email)
	w.setStatus(w.tenant, domain.SuspendTenant)
	allowed := b.submit(shown, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")
	if sent := w.sent(allowed); sent.Get("code") != "" || sent.Get("error") != "access_denied" {
		t.Errorf("%v", sent)
	}
	if sent := w.sent(b.get("/oauth/authorize?" + q.Encode())); sent.Get("error") != "access_denied" {
		t.Errorf("%v", sent)
	}
}

// TestErrorsOfUnknownApps checks that the error of a request is shown, with a link to the app, instead of redirecting the browser to a
// URI that anybody can register.
func TestErrorsOfUnknownApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, published := w.foreign()
	w.verify(w.client, false)
	self := w.register(assistant, "198.51.100.1")
	signedIn := w.browser()
	signedIn.signIn(w.request(), w.operator.Email)
	for _, wrong := range [][2]string{{"response_type", "token"}, {"prompt", "none"}, {"scope", "nonsense"}, {"code_challenge", ""}} {
		for name, q := range map[string]url.Values{
			"self-registered": w.requestOf(self, wrong[0], wrong[1]),
			"published":       w.request("client_id", published.ID.String(), wrong[0], wrong[1]),
			"own":             w.request(wrong[0], wrong[1]),
		} {
			if name == "self-registered" && wrong[0] == "scope" {
				continue
			}
			for _, b := range []*browser{w.browser(), signedIn} {
				p := b.get("/oauth/authorize?" + q.Encode())
				if name == "own" && b == signedIn {
					if w.sent(p).Get("error") == "" {
						t.Errorf("%s %v: %d", name, wrong, p.StatusCode)
					}
					continue
				}
				if p.StatusCode != http.StatusBadRequest || p.Header.Get("Location") != "" || !strings.Contains(p.body, `<a href="https://`) || !strings.Contains(p.body, "iss=") {
					t.Errorf("%s %v: %d, Location %q: %s", name, wrong, p.StatusCode, p.Header.Get("Location"), p.body)
				}
			}
		}
	}
	w.verify(published, true)
	if sent := w.sent(w.browser().get("/oauth/authorize?" + w.request("client_id", published.ID.String(), "prompt", "none").Encode())); sent.Get("error") != "interaction_required" {
		t.Errorf("a verified app: %v", sent)
	}
}
