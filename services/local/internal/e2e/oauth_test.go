package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// oauthFailpoints are the steps at which identity crashes in TestIdentityCrashesDuringTokenRotation.
var oauthFailpoints = []string{"grant.rotated", "grant.revoked"}

// person is a headless browser of an operator.
type person struct {
	t      *testing.T
	base   string // of the pages
	client *http.Client
}

func newPerson(t *testing.T, base string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{t: t, base: base, client: &http.Client{
		Jar: jar, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// open sends a request, with a form for a POST, and follows redirects within the site of the pages.
func (p *person) open(method, address string, form url.Values) (res *http.Response, body string) {
	p.t.Helper()
	for range 10 {
		req, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			p.t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		res, err := p.client.Do(req)
		if err != nil {
			p.t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		to := res.Header.Get("Location")
		if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/") {
			return res, string(text)
		}
		method, address, form = http.MethodGet, p.base+to, nil
	}
	p.t.Fatalf("%s leads in a circle", address)
	return nil, ""
}

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// submit fills in the form of a page and submits it.
func (p *person) submit(body string, fields url.Values) (*http.Response, string) {
	p.t.Helper()
	action := formAction.FindStringSubmatch(body)
	if action == nil {
		p.t.Fatalf("no form: %s", body)
	}
	for _, m := range formHidden.FindAllStringSubmatch(body, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	return p.open(http.MethodPost, p.base+html.UnescapeString(action[1]), fields)
}

// consent opens an app's authorization URL, signs in if necessary, and grants the requested scopes in a mode. It returns the
// parameters that the app receives.
func (p *person) consent(address, mode string) url.Values {
	p.t.Helper()
	_, body := p.open(http.MethodGet, address, nil)
	if strings.Contains(body, `name="password"`) {
		_, body = p.submit(body, url.Values{"email": {shared.env["OPERATOR_EMAIL"]}, "password": {shared.env["OPERATOR_PASSWORD"]}})
	}
	res, body := p.submit(body, url.Values{"mode": {mode}, "decision": {"allow"}})
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != http.StatusSeeOther {
		p.t.Fatalf("%d %v: %s", res.StatusCode, err, body)
	}
	return to.Query()
}

// oauthApp returns the configuration of the seeded app for golang.org/x/oauth2.
func oauthApp(base string, scopes ...string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: shared.env["OAUTH_CLIENT_ID"], RedirectURL: shared.env["OAUTH_REDIRECT_URI"], Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token"},
	}
}

// authorize runs the complete flow of an app with a generic OAuth library.
func authorize(t *testing.T, app *oauth2.Config, pages, mode string) *oauth2.Token {
	t.Helper()
	token, _ := authorized(t, app, pages, mode)
	return token
}

// authorized is authorize, and also returns all secrets of the flow.
func authorized(t *testing.T, app *oauth2.Config, pages, mode string) (token *oauth2.Token, secrets []string) {
	t.Helper()
	verifier := oauth2.GenerateVerifier()
	got := newPerson(t, pages).consent(app.AuthCodeURL("of the app", oauth2.S256ChallengeOption(verifier)), mode)
	if got.Get("state") != "of the app" || got.Get("iss") != shared.env["AUTH_URL"] {
		t.Fatalf("%v", got)
	}
	token, err := app.Exchange(t.Context(), got.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	return token, []string{verifier, got.Get("code"), token.AccessToken, token.RefreshToken}
}

// TestAnAppActsForAnOperator checks that an app with a generic OAuth library can act for an operator: it reads and books in the
// granted mode and with the granted scopes, and refreshes its token. After the operator revokes the access, the next request
// fails.
func TestAnAppActsForAnOperator(t *testing.T) {
	app := oauthApp(shared.env["AUTH_URL"], "read:customers", "write:customers")
	token, secrets := authorized(t, app, shared.env["AUTH_URL"], "test")
	c := shared.with(t, token.AccessToken)
	me := read[struct {
		ID, Type, Mode string
		Scopes         []string
	}](t, c, "/me")
	if !strings.HasPrefix(me.ID, "gr_") || me.Type != "oauth" || me.Mode != "test" || len(me.Scopes) != 2 {
		t.Errorf("%+v", me)
	}
	customer := createdID(t, c.do(t, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`, "once"))
	if again := createdID(t, c.do(t, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`, "once")); again != customer {
		t.Errorf("%s then %s", customer, again)
	}
	c.want(t, http.StatusForbidden, http.MethodGet, "/bookings", "")
	live := shared.with(t, authorize(t, app, shared.env["AUTH_URL"], "live").AccessToken)
	live.want(t, http.StatusForbidden, http.MethodGet, "/customers/"+customer, "")

	expired := *token
	expired.Expiry = time.Now().Add(-time.Minute)
	fresh, err := app.TokenSource(t.Context(), &expired).Token()
	if err != nil || fresh.AccessToken == token.AccessToken || fresh.RefreshToken == token.RefreshToken {
		t.Fatalf("%v: %v", fresh, err)
	}
	refreshed := shared.with(t, fresh.AccessToken)
	if createdID(t, refreshed.do(t, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`, "once")) != customer {
		t.Error("the refreshed token has another space of idempotency keys")
	}
	shared.identity(t, nil, "grant", "revoke", me.ID)
	for _, one := range []*client{c, refreshed} {
		if a := one.want(t, http.StatusUnauthorized, http.MethodGet, "/me", ""); !strings.Contains(string(a.Body), "revoked_credential") {
			t.Errorf("%s", a.Body)
		}
	}
	var refused *oauth2.RetrieveError
	expired.RefreshToken = fresh.RefreshToken
	if _, err := app.TokenSource(t.Context(), &expired).Token(); !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
		t.Errorf("%v", err)
	}
	noSecret(t, append(secrets, fresh.AccessToken, fresh.RefreshToken, shared.env["OPERATOR_PASSWORD"])...)
}

// createdID returns the id of the created resource.
func createdID(t *testing.T, a response) string {
	t.Helper()
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a.Header.Get("Location")[strings.LastIndex(a.Header.Get("Location"), "/")+1:]
}

// noSecret fails the test if a process log, an event, Redis, or a column of identity's database contains one of the secrets.
func noSecret(t *testing.T, secrets ...string) {
	t.Helper()
	for _, topic := range []string{"identity", "customers", "webhooks"} {
		for _, m := range shared.messages(t, topic) {
			for _, s := range secrets {
				if bytes.Contains(m.Value, []byte(s)) || bytes.Contains(m.Key, []byte(s)) {
					t.Errorf("an event of %s holds a secret", topic)
				}
			}
		}
	}
	cache := shared.redis(t)
	for _, key := range cache.Keys(t.Context(), "*").Val() {
		held := key + cache.Get(t.Context(), key).Val() + fmt.Sprint(cache.HGetAll(t.Context(), key).Val())
		for _, s := range secrets {
			if strings.Contains(held, s) {
				t.Errorf("%s in Redis holds a secret", key)
			}
		}
	}
	if shared.cluster != nil {
		return // the pods have the logs
	}
	logs, err := filepath.Glob(shared.path("logs", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v: %v", logs, err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if strings.Contains(string(text), s) {
				t.Errorf("%s holds a secret", filepath.Base(name))
			}
		}
	}
	db := shared.database(t, "identity")
	for _, table := range rows(t, db, `select relname::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`) {
		for _, s := range secrets {
			if found := rows(t, db, `select x::text from `+table+` x where x::text like '%' || $1 || '%' limit 1`, s); len(found) > 0 {
				t.Errorf("%s holds a secret: %s", table, found[0])
			}
		}
	}
}

// TestIdentityCrashesDuringTokenRotation crashes identity between the rotation of a refresh token and the response. An app with a
// leeway can send the old token again and gets its successor. Without a leeway, the token counts as reused, and its family is
// revoked. If identity crashes between the revocation of a grant and the publication of the revocation, the grant stays revoked.
func TestIdentityCrashesDuringTokenRotation(t *testing.T) {
	onMachine(t)
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	identity := newReplica(t, "identity", filepath.Join(bin, "failpoints", "identity"))
	gateway := newReplica(t, "gateway", filepath.Join(bin, "gateway"), "UPSTREAM_IDENTITY_URL=http://"+identity.address)
	defer identity.stop()
	defer gateway.stop()
	gateway.start(t, shared)
	var lenient struct{ ID string }
	shared.identity(t, &lenient, "app", "create", "--tenant", "demo", "--name", "Lenient", "--redirect-uri", shared.env["OAUTH_REDIRECT_URI"],
		"--scopes", "all", "--reuse-leeway", "10", "--json")
	for _, leeway := range []bool{true, false} {
		app := oauthApp("http://"+gateway.address, "read:customers")
		if leeway {
			app.ClientID = lenient.ID
		}
		identity.start(t, shared)
		token := authorize(t, app, "http://"+gateway.address, "test")
		identity.stop()
		identity.start(t, shared, "FAILPOINT=grant.rotated")
		old := &oauth2.Token{RefreshToken: token.RefreshToken}
		await(t, "identity crashes", func() bool { // a connection to the previous process can fail first
			if _, err := app.TokenSource(t.Context(), old).Token(); err == nil {
				t.Fatal("identity has responded, and was to crash")
			}
			return identity.dead()
		})
		identity.start(t, shared)
		after, err := app.TokenSource(context.Background(), old).Token()
		switch {
		case leeway && err != nil:
			t.Errorf("with a leeway: %v", err)
		case leeway:
			shared.with(t, after.AccessToken).want(t, http.StatusOK, http.MethodGet, "/me", "")
			if _, err := app.TokenSource(t.Context(), &oauth2.Token{RefreshToken: after.RefreshToken}).Token(); err != nil {
				t.Errorf("the successor: %v", err)
			}
		case err == nil:
			t.Error("without a leeway a token that was exchanged is exchanged again")
		default:
			shared.with(t, token.AccessToken).want(t, http.StatusUnauthorized, http.MethodGet, "/me", "")
		}
		identity.stop()
	}
	app := oauthApp("http://"+gateway.address, "read:customers")
	identity.start(t, shared)
	token := authorize(t, app, "http://"+gateway.address, "test")
	c := shared.with(t, token.AccessToken)
	c.want(t, http.StatusOK, http.MethodGet, "/me", "") // so that every gateway caches it
	identity.stop()
	identity.start(t, shared, "FAILPOINT=grant.revoked")
	form := url.Values{"token": {token.RefreshToken}, "client_id": {app.ClientID}}
	await(t, "identity crashes", func() bool {
		if res, err := httpClient.PostForm("http://"+gateway.address+"/oauth/revoke", form); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				t.Fatal("identity has responded, and was to crash")
			}
		}
		return identity.dead()
	})
	await(t, "the end of the grant is published by another process", func() bool {
		a, err := c.try(t, http.MethodGet, "/me", "", "")
		return err == nil && a.Status == http.StatusUnauthorized
	})
}
