package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/api"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// elsewhere lists the declared responses that this service never returns itself. The gateway returns them.
var elsewhere = map[string][]int{"getTenant": {400, 403, 429, 504}, "getMe": {400, 403, 429, 504}}

func TestMain(m *testing.M) { os.Exit(apitest.Main(m, "identity", elsewhere)) }

// world is the real router, app and database of one test, with the shared Redis.
type world struct {
	*apitest.Env
	engine  http.Handler
	app     *app.App
	lastUse *app.LastUse
}

func newWorld(t *testing.T) *world {
	t.Helper()
	redis, err := redisx.Open(testservers.Getenv(t, "TEST_REDIS_URL"), redisx.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	w := &world{Env: apitest.New(t, "identity", migrations.FS)}
	pgtest.Scoped(t, w.DB)
	log := slog.New(slog.DiscardHandler)
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	w.app = &app.App{
		Box: box, DB: w.DB.App, Worker: w.DB.Worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes, Passwords: app.NewPasswords(1), Now: time.Now, Log: log,
	}
	w.lastUse = &app.LastUse{Worker: w.DB.Worker, Log: log}
	w.engine = w.serve(w.DB.App)
	return w
}

func (w *world) serve(db *pg.DB) http.Handler {
	w.T.Helper()
	identity := *w.app
	identity.DB = db
	idempotency := &idemstore.Store{DB: db, Box: w.app.Box, Now: time.Now}
	handlers := &api.API{
		DB: db, App: &identity, Idempotency: idempotency, LastUse: w.lastUse, RateLimit: 77, Now: time.Now,
		Server: w.Server(idempotency, "bookings", "customers", "console"),
	}
	engine := httpx.NewEngine("https://booking.test")
	if err := handlers.Mount(engine); err != nil {
		w.T.Fatal(err)
	}
	return engine
}

// response is a response.
type response struct{ apitest.Response }

// do sends a request as the gateway would and checks the response against the contract.
func (w *world) do(ctx context.Context, method, path string, headers ...apitest.Header) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "gateway", method, "/api/v1"+path, "", headers...)}
}

// from sends a request as peer would; "" does not sign it.
func (w *world) from(ctx context.Context, peer, method, target, body string, headers ...apitest.Header) response {
	w.T.Helper()
	if peer == "" {
		headers = append(headers, unsigned)
	}
	return response{w.Send(ctx, w.engine, peer, method, target, body, headers...)}
}

const (
	unsigned apitest.Header = caller.Header + ": "
	strict   apitest.Header = "Prefer: handling=strict" // as the console sends it
)

func (a response) is(status int, codeAndField ...string) response {
	a.T.Helper()
	a.Is(status, codeAndField...)
	return a
}

func decode[T any](a response) T { return apitest.Decode[T](a.Response) }

// keyed creates a tenant and a key of it. It returns a context with the caller that the gateway would sign.
func (w *world) keyed(mode, scopes string) (ctx context.Context, tenant domain.Tenant, secret string) {
	w.T.Helper()
	by := domain.Origin{Actor: "cli", Source: "test"}
	tenant, err := w.app.CreateTenant(w.T.Context(), by, "s"+ids.New[ids.RequestPrefix]().String()[4:], domain.TenantPatch{
		Name: patch.Value("Demo & <Co>"), Timezone: patch.Value("Europe/Berlin"), Currency: patch.Value("EUR"),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	k, secret, err := w.app.CreateKey(w.T.Context(), by, app.NewKey{Tenant: tenant.ID, Mode: mode, Name: "Till", Scopes: scopes})
	if err != nil {
		w.T.Fatal(err)
	}
	return caller.With(w.T.Context(), caller.Caller{
		Tenant: tenant.ID, Timezone: tenant.Timezone, Currency: tenant.Currency, PolicyVersion: 1,
		Mode: caller.Mode(mode), Credential: k.ID.String(), Kind: "api_key", Scopes: k.Scopes,
		RequestID: ids.New[ids.RequestPrefix]().String(),
	}), tenant, secret
}

// in returns ctx with a caller changed by f.
func in(ctx context.Context, f func(*caller.Caller)) context.Context {
	c := caller.FromContext(ctx)
	f(&c)
	return caller.With(ctx, c)
}

// service returns a context in which a service acts on its own behalf.
func (w *world) service(name string, tenant ids.Tenant, mode caller.Mode) context.Context {
	w.T.Helper()
	return caller.With(w.T.Context(), caller.Service(name, tenant, mode))
}
