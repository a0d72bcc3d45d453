package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// receivers are all receivers of a test. They record each request, and respond with the function of its URL, or with 200.
type receivers struct {
	mu       sync.Mutex
	requests []domain.Outgoing
	respond  map[string]func(domain.Outgoing) domain.Response
}

func (r *receivers) Send(_ context.Context, d domain.Outgoing) domain.Response {
	r.mu.Lock()
	r.requests = append(r.requests, d)
	respond := r.respond[d.URL]
	r.mu.Unlock()
	if respond == nil {
		return domain.Response{Status: 200, Body: []byte("ok")}
	}
	return respond(d)
}

func (r *receivers) at(url string, respond func(domain.Outgoing) domain.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond[url] = respond
}

// got returns the requests to a URL, or all requests when url is empty.
func (r *receivers) got(url string) []domain.Outgoing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.requests), func(d domain.Outgoing) bool { return url != "" && d.URL != url })
}

func status(code int) func(domain.Outgoing) domain.Response {
	return func(domain.Outgoing) domain.Response { return domain.Response{Status: code} }
}

// anyURL is a Guard that allows every URL.
type anyURL struct{}

func (anyURL) CheckURL(context.Context, string, bool) error { return nil }

// world contains the service's use cases on their own database, with a clock that the test moves.
type world struct {
	*clock
	t           *testing.T
	db          *pgtest.DB
	ctx         context.Context // The context carries the caller.
	receivers   *receivers
	dispatcher  *app.Dispatcher
	idempotency *idemstore.Store
	endpoints   *app.Endpoints
	deliveries  *app.Deliveries
	intake      *app.Intake
	wakes       atomic.Int64 // how often the dispatcher was woken
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	w := &world{
		t: t, db: db, clock: &clock{at: time.Now().Truncate(time.Microsecond)},
		receivers: &receivers{respond: map[string]func(domain.Outgoing) domain.Response{}},
	}
	w.ctx = w.caller(ids.New[ids.TenantPrefix](), caller.Test)
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	w.dispatcher = w.newDispatcher(box)
	w.idempotency = &idemstore.Store{DB: db.App, Box: box, Now: w.Now}
	queue := &store.Queue{Wake: func() { w.wakes.Add(1) }}
	w.endpoints = &app.Endpoints{DB: db.App, Box: box, Guard: anyURL{}, Queue: queue, Now: w.Now}
	w.deliveries = &app.Deliveries{Queue: queue, Now: w.Now}
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	w.intake = &app.Intake{
		DB: db.App, Worker: db.Worker, Queue: queue, Notifier: &app.Notifier{}, BatchBytes: 8 << 20, Now: w.Now, Contract: spec, Idempotency: w.idempotency,
	}
	return w
}

// newDispatcher returns another dispatcher on the same database, like that of another process.
func (w *world) newDispatcher(box *crypt.Box) *app.Dispatcher {
	return &app.Dispatcher{
		Worker: w.db.Worker, Box: box, Sender: w.receivers, Log: slog.New(slog.DiscardHandler), Metrics: app.NewMetrics(nil),
		Breaker: true, MaxConcurrency: 256, MaxBytes: 64 << 20, BatchBytes: 8 << 20, Now: w.Now, Jitter: func() float64 { return .5 }, WakeRelay: func() {},
	}
}

func (w *world) caller(tenant ids.Tenant, mode caller.Mode) context.Context {
	c := caller.FromContext(pgtest.CtxOf(w.t, tenant, mode))
	c.Scopes = proto.Scopes
	return caller.With(w.t.Context(), c)
}

// endpoint registers an endpoint for every type.
func (w *world) endpoint(ctx context.Context, url string, change ...func(*domain.EndpointPatch)) domain.EndpointWithSecret {
	w.t.Helper()
	in := domain.EndpointPatch{URL: patch.Value(url), EventTypes: patch.Value([]string{domain.Every})}
	for _, c := range change {
		c(&in)
	}
	write, err := w.endpoints.Prepare(ctx, in)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := use(ctx, w.db.App, func(ctx context.Context, tx pg.Tx) (domain.EndpointWithSecret, error) {
		return w.endpoints.Create(ctx, tx, write)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// use runs a use case in a transaction.
func use[T any](ctx context.Context, db *pg.DB, use func(ctx context.Context, tx pg.Tx) (T, error)) (out T, err error) {
	err = db.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		out, err = use(ctx, tx)
		return err
	})
	return out, err
}

// limits returns a change of an endpoint's limits.
func limits(inFlight, perSecond int) func(*domain.EndpointPatch) {
	return func(p *domain.EndpointPatch) {
		p.MaxInFlight, p.MaxPerSecond = patch.Value(inFlight), patch.Value(perSecond)
	}
}

// rotate adds a new secret to an endpoint and returns it.
func (w *world) rotate(id domain.EndpointID, overlap time.Duration) string {
	w.t.Helper()
	e, err := use(w.ctx, w.db.App, func(ctx context.Context, tx pg.Tx) (domain.EndpointWithSecret, error) {
		return w.endpoints.Rotate(ctx, tx, id, overlap, httpx.Match{})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return e.Secret
}

// test sends a sample to an endpoint.
func (w *world) test(id domain.EndpointID, eventType string) error {
	return w.db.App.Tx(w.ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := w.deliveries.Test(ctx, tx, id, eventType, httpx.Match{})
		return err
	})
}

func (w *world) retry(endpoint domain.EndpointID, id domain.DeliveryID) error {
	return w.db.App.Tx(w.ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := w.deliveries.Retry(ctx, tx, endpoint, id)
		return err
	})
}

// replay redelivers the events of two hours around now to an endpoint and returns their number.
func (w *world) replay(id domain.EndpointID, types ...string) (n int, err error) {
	return use(w.ctx, w.db.App, func(ctx context.Context, tx pg.Tx) (int, error) {
		return w.deliveries.Replay(ctx, tx, app.Replay{Endpoint: id.String(), Types: types, From: w.Now().Add(-time.Hour), To: w.Now().Add(time.Hour)})
	})
}

func decode[T any](t *testing.T, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// event returns an event about a new customer of the caller's tenant, created now.
func (w *world) event(ctx context.Context) domain.Event {
	c := caller.FromContext(ctx)
	customer := ids.New[ids.CustomerPrefix]()
	return domain.Event{
		ID: ids.New[ids.EventPrefix](), Tenant: c.Tenant, Livemode: c.Live(), Type: "customer.created", ObjectID: customer.String(),
		Version: 1, RequestID: c.RequestID, Object: fmt.Appendf(nil, `{"id":%q,"first_name":"Ada <&> 🎉","email":"a@b.c","metadata":{}}`, customer),
		Previous: json.RawMessage(`{}`),
	}
}

// markFast makes the speed of all endpoints fast.
func (w *world) markFast() {
	w.t.Helper()
	w.exec(`update endpoint_queues set slow_until = '2000-01-01Z'`)
}

// exec runs a statement in the worker role, which sees all tenants.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	err := w.db.Worker.SystemTx(w.t.Context(), func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// ingest writes n new events.
func (w *world) ingest(ctx context.Context, n int) []domain.Event {
	w.t.Helper()
	var list []domain.Event
	for range n {
		list = append(list, w.event(ctx))
	}
	if err := w.intake.Ingest(ctx, list); err != nil {
		w.t.Fatal(err)
	}
	return list
}

// step makes one pass of the dispatcher and returns the number of attempts.
func (w *world) step() int {
	w.t.Helper()
	n, err := w.dispatcher.Step(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// drain makes passes until none has an attempt, without moving the clock, and returns the number of attempts.
func (w *world) drain() (attempts int) {
	w.t.Helper()
	for range 200 {
		n := w.step()
		if attempts += n; n == 0 {
			return attempts
		}
	}
	w.t.Fatal("attempts are still due after 200 passes")
	return 0
}

func (w *world) get(ctx context.Context, id domain.EndpointID) domain.Endpoint {
	w.t.Helper()
	e, err := store.Endpoint(ctx, w.db.App.Read(ctx), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// log returns the newest deliveries of an endpoint, up to 100.
func (w *world) log(ctx context.Context, id domain.EndpointID, f store.DeliveryFilter) []domain.Delivery {
	w.t.Helper()
	f.Endpoint = id
	list, err := store.Deliveries(ctx, w.db.App.Read(ctx), f, page.Request{Limit: 100}, w.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// setStatus enables or disables an endpoint.
func (w *world) setStatus(id domain.EndpointID, to domain.Status) {
	w.t.Helper()
	_, err := use(w.ctx, w.db.App, func(ctx context.Context, tx pg.Tx) (domain.Endpoint, error) {
		change := app.EndpointWrite{EndpointPatch: domain.EndpointPatch{Status: patch.Value(to)}}
		return w.endpoints.Update(ctx, tx, id, change, httpx.Match{})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// texts reads a column in the worker role, which sees all tenants.
func (w *world) texts(sql string) (out []string) {
	w.t.Helper()
	err := w.db.Worker.SystemTx(w.t.Context(), func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, sql)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
