package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/api/oauth"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

const (
	password = "correct horse battery staple"
	redirect = "https://app.example/callback"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// world is a tenant with an owner and an app, with the real pages, use cases and database of one test.
type world struct {
	t        testing.TB
	db       *pgtest.DB
	app      *app.App
	server   *httptest.Server
	tenant   domain.Tenant
	operator domain.Operator
	client   domain.App
	metrics  *prometheus.Registry
	resets   *app.PasswordResets
	fetcher  documentFetcher

	mu    sync.Mutex
	ahead time.Duration // guarded by mu: how far the server's clock is ahead
	conn  *pgx.Conn     // of owner
}

func newWorld(t testing.TB) *world {
	t.Helper()
	redis, err := redisx.Open(testservers.Getenv(t, "TEST_REDIS_URL"), redisx.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	box, err := crypt.NewBox("k1:" + strings.Repeat("cd", 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: pgtest.New(t, migrations.FS), metrics: prometheus.NewRegistry()}
	passwords := app.NewPasswords(2)
	w.app = &app.App{
		DB: w.db.App, Worker: w.db.Worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes, Passwords: passwords, Box: box,
		Metrics: app.NewMetrics(w.metrics, passwords), Now: w.now, Log: slog.New(slog.DiscardHandler),
	}
	w.serve(box)
	w.tenant = w.newTenant("Boats")
	w.operator = w.invite(w.tenant, "dana@example.com", "owner")
	w.client = w.newApp(w.tenant, func(*app.Registration) {})
	w.verify(w.client, true) // so that errors are sent to it
	return w
}

// serve starts the server. These tests do not cover the gateway's signature.
func (w *world) serve(box *crypt.Box) {
	w.t.Helper()
	engine := httpx.NewRouter("https://booking.test", domain.ErrTenantNotFound)
	listener := httptest.NewUnstartedServer(engine)
	issuer := "http://" + listener.Listener.Addr().String()
	documents := app.NewClientDocuments(w.app, &w.fetcher)
	s, err := oauth.New(oauth.Options{App: w.app, Documents: documents, Box: box, AuthURL: issuer, PublicURL: issuer, Resets: w.resets, Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Mount(engine, func(h httpx.Handler, _ ...string) gin.HandlerFunc {
		return func(c *gin.Context) {
			if err := h(c); err != nil {
				httpx.Fail(c, err)
			}
		}
	})
	listener.Start()
	w.t.Cleanup(listener.Close)
	w.server = listener
}

// documentFetcher fetches client ID metadata documents. Without a fetcher, the site of each client is down.
type documentFetcher struct{ app.DocumentFetcher }

func (f *documentFetcher) Fetch(ctx context.Context, url string) (domain.ClientDocument, time.Duration, error) {
	if f.DocumentFetcher == nil {
		return domain.ClientDocument{}, 0, domain.DocumentError("the site is down")
	}
	return f.DocumentFetcher.Fetch(ctx, url)
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// pass moves the server's clock forward.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

var by = domain.Origin{Actor: "cli", Source: "test"}

func (w *world) newTenant(name string) domain.Tenant {
	w.t.Helper()
	tenant, err := w.app.CreateTenant(w.t.Context(), by, "s"+ids.New[ids.RequestPrefix]().String()[4:], domain.TenantPatch{
		Name: patch.Value(name), Timezone: patch.Value("Europe/Berlin"), Currency: patch.Value("EUR"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return tenant
}

// invite creates an operator with the password.
func (w *world) invite(tenant domain.Tenant, email, role string) domain.Operator {
	w.t.Helper()
	o, token, err := w.app.InviteOperator(w.t.Context(), by, app.Invitation{Tenant: tenant.ID, Email: email, Name: "Dana", Role: role})
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		if o, err = w.app.UseLink(w.t.Context(), by, token, password); err != nil {
			w.t.Fatal(err)
		}
	}
	return o
}

func (w *world) newApp(tenant domain.Tenant, edit func(p *app.Registration)) domain.App {
	w.t.Helper()
	p := app.Registration{
		Name: patch.Value("Till & <Co>"), Scopes: patch.Value("all"),
		RedirectURIs: patch.Value([]string{redirect, "http://127.0.0.1/cb", "com.example.app:/cb", "https://app.example/q?a=b"}),
	}
	edit(&p)
	a, err := w.app.CreateApp(w.t.Context(), by, tenant.ID, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// request returns an authorization request of the app. Each pair changes a parameter, and an empty value removes it.
func (w *world) request(pairs ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {w.client.ID.String()}, "redirect_uri": {redirect}, "scope": {"read:bookings write:bookings"},
		"state": {"s t&ate"}, "code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return q
}

// browser stores cookies and follows no redirects.
type browser struct {
	w      *world
	client *http.Client
	header http.Header // sent with each request
}

func (w *world) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{w: w, header: http.Header{"X-Forwarded-For": {"198.51.100.7"}}, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// page is a response to a browser.
type page struct {
	*http.Response
	body string
	path string // with the query
}

func (b *browser) do(method, path string, form url.Values) *page {
	b.w.t.Helper()
	req, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.w.t.Fatal(err)
	}
	req.Header = b.header.Clone()
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return &page{res, string(body), path}
}

func (b *browser) get(path string) *page { b.w.t.Helper(); return b.do(http.MethodGet, path, nil) }

var (
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
	action = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
)

// submit sends the page's form with its hidden fields and the given ones.
func (b *browser) submit(p *page, pairs ...string) *page {
	b.w.t.Helper()
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(p.body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	to := action.FindStringSubmatch(p.body)
	if to == nil {
		b.w.t.Fatalf("%s returned %d without a form: %s", p.path, p.StatusCode, p.body)
	}
	return b.do(http.MethodPost, html.UnescapeString(to[1]), form)
}

// follow follows the redirect of the response.
func (b *browser) follow(p *page) *page {
	b.w.t.Helper()
	if p.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("%s returned %d, want 303: %s", p.path, p.StatusCode, p.body)
	}
	return b.get(strings.TrimPrefix(p.Header.Get("Location"), b.w.server.URL))
}

// signIn goes from the authorization request to the consent page.
func (b *browser) signIn(q url.Values, email string) *page {
	b.w.t.Helper()
	form := b.follow(b.get("/oauth/authorize?" + q.Encode()))
	return b.follow(b.submit(form, "email", email, "password", password))
}

// allow signs in and consents. It returns the parameters that the app receives.
func (b *browser) allow(q url.Values, email string) url.Values {
	b.w.t.Helper()
	return b.w.sent(b.submit(b.signIn(q, email), "tenant", b.w.tenant.ID.String(), "mode", "test", "decision", "allow"))
}

// sent returns the parameters of the redirect to the app.
func (w *world) sent(p *page) url.Values {
	w.t.Helper()
	if p.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("%s returned %d, want 303: %s", p.path, p.StatusCode, p.body)
	}
	u, err := url.Parse(p.Header.Get("Location"))
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Query()
}

// tokens is a response of the token endpoint.
type tokens struct {
	Status      int    `json:"-"`
	Access      string `json:"access_token"`
	Refresh     string `json:"refresh_token"`
	RequestURI  string `json:"request_uri"`
	Type        string `json:"token_type"`
	Scope       string `json:"scope"`
	ExpiresIn   int    `json:"expires_in"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
	header      http.Header
}

// token sends a form to the token endpoint. An empty value removes a parameter.
func (w *world) token(pairs ...string) tokens {
	w.t.Helper()
	form := url.Values{"client_id": {w.client.ID.String()}}
	for i := 0; i < len(pairs); i += 2 {
		if form.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			form.Del(pairs[i])
		}
	}
	return w.post("/oauth/token", form)
}

func (w *world) post(path string, form url.Values) (out tokens) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Error(err)
		return tokens{}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Error(err)
		return tokens{}
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Error(err)
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			w.t.Errorf("%s: %v", raw, err)
		}
	}
	out.Status, out.header = res.StatusCode, res.Header
	return out
}

// is fails the test unless the response has the status and the error, "" for none.
func (a tokens) is(t testing.TB, status int, code string) tokens {
	t.Helper()
	if a.Status != status || a.Error != code {
		t.Errorf("%d %q, want %d %q: %+v", a.Status, a.Error, status, code, a)
	}
	return a
}

// exchange exchanges a code.
func (w *world) exchange(code string, pairs ...string) tokens {
	w.t.Helper()
	return w.token(append([]string{"grant_type", "authorization_code", "code", code, "code_verifier", verifier}, pairs...)...)
}

// refresh exchanges a refresh token.
func (w *world) refresh(token string, pairs ...string) tokens {
	w.t.Helper()
	return w.token(append([]string{"grant_type", "refresh_token", "refresh_token", token}, pairs...)...)
}

// granted completes the whole flow as the owner.
func (w *world) granted(pairs ...string) tokens {
	w.t.Helper()
	return w.exchange(w.browser().allow(w.request(pairs...), w.operator.Email).Get("code")).is(w.t, 200, "")
}

// principal returns the principal that the gateway would look up for an access token now.
func (w *world) principal(access string) domain.TokenPrincipal {
	w.t.Helper()
	ctx := context.Background()
	p, err := store.AccessToken(ctx, w.db.App.Read(ctx), domain.SecretHash(access))
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// alive reports whether an access token works, and returns its scopes.
func (w *world) alive(access string) (scopes string, ok bool) {
	w.t.Helper()
	p := w.principal(access)
	return strings.Join(p.Granted(), " "), !p.Revoked
}
