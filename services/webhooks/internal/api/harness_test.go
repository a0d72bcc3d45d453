package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/api"
	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// elsewhere lists the declared responses that the gateway returns and this service does not.
var elsewhere = map[string][]int{
	"listWebhookEndpoints": {403, 429, 504}, "createWebhookEndpoint": {429, 504}, "listEventTypes": {400, 403, 422, 429, 500, 503, 504},
	"getWebhookEndpoint": {400, 429, 504}, "updateWebhookEndpoint": {429, 504}, "deleteWebhookEndpoint": {400, 413, 429, 504},
	"rotateWebhookSecret": {429, 504}, "testWebhookEndpoint": {429, 504}, "listDeliveries": {429, 504},
	"retryDelivery": {429, 504}, "listEvents": {429, 504}, "streamEvents": {400, 504}, "getEvent": {400, 429, 504},
	"replayEvents": {429, 504}, "resendEvent": {429, 504},
}

func TestMain(m *testing.M) { os.Exit(apitest.Main(m, "webhooks", elsewhere)) }

// guard rejects URLs that contain "private".
type guard struct{}

var errPrivate = errors.New("Must be at a public address.") //nolint:staticcheck // a sentence for people

func (guard) CheckURL(_ context.Context, url string, live bool) error {
	if strings.Contains(url, "private") || live && !strings.HasPrefix(url, "https://") {
		return errPrivate
	}
	return nil
}

// world is the real router, app and database of one test.
type world struct {
	*apitest.Env
	engine   http.Handler
	intake   *app.Intake
	notifier *app.Notifier
	streams  *api.Streams
	stop     chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Env: apitest.New(t, "webhooks", migrations.FS), notifier: &app.Notifier{MinInterval: 10 * time.Millisecond, MaxStreams: 100}, stop: make(chan struct{})}
	pgtest.Scoped(t, w.DB)
	w.streams = &api.Streams{Notifier: w.notifier, MaxDuration: time.Hour, PollInterval: 50 * time.Millisecond, Stop: w.stop}
	w.intake = &app.Intake{
		DB: w.DB.App, Worker: w.DB.Worker, Queue: &store.Queue{Wake: func() {}}, Notifier: w.notifier, BatchBytes: 8 << 20, Now: time.Now,
		Contract: w.Server(nil).Contract, Idempotency: &idemstore.Store{DB: w.DB.App, Now: time.Now},
	}
	w.engine = w.serve(w.DB.App)
	return w
}

func (w *world) serve(db *pg.DB) http.Handler {
	w.T.Helper()
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		w.T.Fatal(err)
	}
	idempotency := &idemstore.Store{DB: db, Box: box, Now: time.Now}
	endpoints := &app.Endpoints{DB: db, Box: box, Guard: guard{}, Queue: &store.Queue{Wake: func() {}}, Now: time.Now}
	handlers := &api.API{
		DB:          db,
		Idempotency: idempotency,
		Endpoints:   endpoints,
		Grants:      &app.EndpointGrants{Worker: w.DB.Worker, Endpoints: endpoints},
		Deliveries:  &app.Deliveries{Queue: &store.Queue{Wake: func() {}}, Now: time.Now},
		Streams:     w.streams,
		Pages:       w.Pages(),
		Server:      w.Server(idempotency, "customers", "console", "identity"),
		Now:         time.Now,
	}
	engine := httpx.NewEngine("https://booking.test")
	if err := handlers.Mount(engine); err != nil {
		w.T.Fatal(err)
	}
	return engine
}

// as returns a context with a caller of the tenant, with the given scopes, or with all scopes if none is given.
func (w *world) as(tenant ids.Tenant, mode caller.Mode, scopes ...string) context.Context {
	c := caller.FromContext(pgtest.CtxOf(w.T, tenant, mode))
	if c.Scopes = scopes; len(scopes) == 0 {
		c.Scopes = proto.Scopes
	}
	return caller.With(w.T.Context(), c)
}

func (w *world) ctx() context.Context { return w.as(ids.New[ids.TenantPrefix](), caller.Test) }

// response is the response to a request.
type response struct{ apitest.Response }

type header = apitest.Header

// do sends a request as the gateway would and checks the response against the contract.
func (w *world) do(ctx context.Context, method, path, body string, headers ...header) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "gateway", method, "/api/v1"+path, body, headers...)}
}

func (a response) is(status int, codeAndField ...string) response {
	a.T.Helper()
	a.Is(status, codeAndField...)
	return a
}

// str returns a field of the body, or "" if it is null or absent.
func (a response) str(name string) string {
	a.T.Helper()
	v, _ := apitest.Decode[map[string]any](a.Response)[name].(string)
	return v
}

// data returns the items of a list.
func (a response) data() []map[string]any {
	a.T.Helper()
	return apitest.Decode[struct{ Data []map[string]any }](a.Response).Data
}

// endpoint registers an endpoint and returns its id.
func (w *world) endpoint(ctx context.Context, types ...string) string {
	w.T.Helper()
	if len(types) == 0 {
		types = []string{"*"}
	}
	list, _ := json.Marshal(types)
	return w.do(ctx, "POST", "/webhook-endpoints", fmt.Sprintf(`{"url":"https://example.com/hook","event_types":%s}`, list)).is(201).str("id")
}

// ingest writes n events of a type, each about a different object.
func (w *world) ingest(ctx context.Context, eventType string, n int) []domain.Event {
	w.T.Helper()
	c := caller.FromContext(ctx)
	var list []domain.Event
	for range n {
		object := ids.New[ids.CustomerPrefix]().String()
		if strings.HasPrefix(eventType, "booking") {
			object = strings.Replace(object, "cu_", "bk_", 1)
		}
		list = append(list, domain.Event{
			ID: ids.New[ids.EventPrefix](), Tenant: c.Tenant, Livemode: c.Live(), Type: eventType, ObjectID: object, Version: 1,
			RequestID: "req_1", IdempotencyKey: "k", Object: fmt.Appendf(nil, `{"id":%q,"name":"<&>"}`, object), Previous: []byte(`{}`),
		})
	}
	slices.SortFunc(list, func(x, y domain.Event) int { return strings.Compare(x.ID.String(), y.ID.String()) })
	if err := w.intake.Ingest(ctx, list); err != nil {
		w.T.Fatal(err)
	}
	return list
}
