package api_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"

	"holdfast.dev/services/logs/internal/api"
	"holdfast.dev/services/logs/internal/app"
	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/migrations"
)

// elsewhere lists the declared responses that the gateway returns and this service does not.
var elsewhere = map[string][]int{"listRequestLogs": {403, 429, 504}, "getRequestLog": {400, 429, 504}}

func TestMain(m *testing.M) { os.Exit(apitest.Main(m, "logs", elsewhere)) }

const retention = 7 * 24 * time.Hour

// world is the real router, app and database of one test.
type world struct {
	*apitest.Env
	engine http.Handler
	intake *app.Intake
	behind bool // the consumer has not stored all messages
}

func (w *world) caughtUp(context.Context) (bool, error) { return !w.behind, nil }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Env: apitest.New(t, "logs", migrations.FS)}
	pgtest.Scoped(t, w.DB)
	w.intake = &app.Intake{Worker: w.DB.Worker, Retention: retention, MaxRows: 1000, Now: time.Now, Metrics: app.NewMetrics(nil)}
	w.engine = w.serve(w.DB.App)
	return w
}

func (w *world) serve(db *pg.DB) http.Handler {
	w.T.Helper()
	handlers := &api.API{DB: db, Pages: w.Pages(), Server: w.Server(nil, "identity"), Retention: retention, Now: time.Now, CaughtUp: w.caughtUp}
	engine := httpx.NewEngine("https://booking.test")
	if err := handlers.Mount(engine); err != nil {
		w.T.Fatal(err)
	}
	return engine
}

// as returns a context with a caller that has all scopes.
func (w *world) as(tenant ids.Tenant, mode caller.Mode) context.Context {
	c := caller.FromContext(pgtest.CtxOf(w.T, tenant, mode))
	c.Scopes = proto.Scopes
	return caller.With(w.T.Context(), c)
}

func (w *world) ctx() context.Context { return w.as(ids.New[ids.TenantPrefix](), caller.Test) }

// get sends a request as the gateway would and checks the response against the contract.
func (w *world) get(ctx context.Context, path string, headers ...apitest.Header) apitest.Response {
	w.T.Helper()
	return w.Send(ctx, w.engine, "gateway", http.MethodGet, "/api/v1"+path, "", headers...)
}

// store stores n requests of the caller in ctx.
func (w *world) store(ctx context.Context, n int, change ...func(*domain.RequestLog)) []domain.RequestLog {
	w.T.Helper()
	c := caller.FromContext(ctx)
	var list []domain.RequestLog
	for range n {
		l := domain.RequestLog{
			TenantID: c.Tenant, Livemode: c.Live(), ID: ids.New[ids.RequestPrefix](), Status: 201, Method: "POST", Route: "/bookings",
			Path: "/bookings", QueryNames: []string{}, CredentialID: "key_1", CredentialType: "api_key",
		}
		for _, f := range change {
			f(&l)
		}
		list = append(list, l)
	}
	if err := w.intake.Store(ctx, append([]domain.RequestLog(nil), list...), nil); err != nil {
		w.T.Fatal(err)
	}
	return list
}
