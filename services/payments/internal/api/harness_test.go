package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/payments/internal/api"
	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/consume"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
	"holdfast.dev/services/payments/internal/peers/peerstest"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

// elsewhere lists the declared responses that only the gateway, not this service, returns.
var elsewhere = map[string][]int{
	"createPaymentIntent": {403, 429, 504}, "listPaymentIntents": {403, 429, 504}, "getPaymentIntent": {400, 429, 504},
	"cancelPaymentIntent": {429, 504}, "capturePaymentIntent": {429, 504},
	"createRefund": {403, 429, 504}, "listRefunds": {403, 429, 504}, "getRefund": {400, 429, 504},
}

func TestMain(m *testing.M) {
	code := apitest.MainOfWrites(m, "payments", elsewhere)
	_ = os.RemoveAll(standInFolder)
	os.Exit(code)
}

// world contains the real router, app and database of one test. The payment gateway and the other services are fakes that store
// state.
type world struct {
	*apitest.Env
	engine        http.Handler
	gateway       *peerstest.Gateway
	standIn       *standIn // replaces the fake gateway if a test has started one
	bookings      *peerstest.Bookings
	invoices      *peerstest.Invoices
	accounts      *app.Accounts
	intents       *app.Intents // of the last engine, like the fields below
	events        *app.Events
	completer     *app.Completer
	canceler      *app.Canceler
	topicHandlers consume.Handlers
	refunder      *app.RefundCompleter
	settler       *app.Settler
	owed          *app.OwedRefunds
	money         *app.Money
	metrics       *prometheus.Registry
	woken         atomic.Int64 // how often refunds have signaled events to the worker
	ahead         atomic.Int64 // by how much the clock of the service is ahead
	maxWait       time.Duration
	around        func(app.Gateway) app.Gateway // changes the behavior of the gateway; nil: unchanged
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Env: apitest.New(t, "payments", migrations.FS), gateway: &peerstest.Gateway{}, bookings: &peerstest.Bookings{},
		maxWait: 5 * time.Second,
	}
	w.invoices = &peerstest.Invoices{Bookings: w.bookings}
	pgtest.Scoped(t, w.DB)
	w.engine = w.serve(w.DB.App)
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *world) serve(db *pg.DB) http.Handler {
	w.T.Helper()
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		w.T.Fatal(err)
	}
	idempotency := &idemstore.Store{DB: db, Box: box, Now: w.now}
	server := w.Server(idempotency, "bookings", "customers", "console")
	accounts, quiet := store.Accounts{Box: box}, slog.New(slog.DiscardHandler)
	gateway := app.Gateway(w.gateway)
	if w.standIn != nil {
		gateway = w.standIn.stripe
	}
	if w.around != nil {
		gateway = w.around(gateway)
	}
	w.accounts = &app.Accounts{DB: db, Store: accounts, Gateway: gateway, Now: w.now}
	w.metrics = prometheus.NewRegistry()
	w.intents = &app.Intents{
		DB: db, Accounts: accounts, Gateway: gateway, Bookings: w.bookings, Invoices: w.invoices, Keys: idempotency,
		Metrics: app.NewMetrics(w.metrics), Wake: func() {}, Now: w.now,
	}
	refunds := &app.Refunds{Intents: w.intents, Wake: func() { w.woken.Add(1) }}
	w.events = &app.Events{Intents: w.intents, Refunds: refunds, Worker: w.DB.Worker, Reader: peers.NewStripe("http://127.0.0.1:1", time.Second, 1), Log: quiet, Wake: func() {}}
	w.topicHandlers = consume.Handlers{
		Bookings: &app.BookingProjection{Worker: w.DB.Worker, Now: w.now},
		Eraser:   &app.Eraser{DB: db, Idempotency: idempotency, Contract: server.Contract, Wake: func() {}},
	}
	w.canceler = &app.Canceler{Intents: w.intents, Worker: w.DB.Worker, Log: quiet}
	w.completer = &app.Completer{Intents: w.intents, Worker: w.DB.Worker, Log: quiet}
	w.settler = &app.Settler{Intents: w.intents, Lookup: w.bookings, Worker: w.DB.Worker, Log: quiet}
	w.owed = &app.OwedRefunds{Refunds: refunds, Worker: w.DB.Worker, Log: quiet}
	w.money = &app.Money{DB: db, Wake: func() {}, Now: w.now}
	w.refunder = &app.RefundCompleter{Refunds: refunds, Worker: w.DB.Worker, Log: quiet}
	handlers := &api.API{
		DB: db, Idempotency: idempotency, Accounts: accounts, Gateways: w.accounts, Intents: w.intents, Refunds: refunds, Owed: w.owed, Money: w.money, Events: w.events, MaxWait: w.maxWait, Pages: w.Pages(),
		Server: server,
	}
	engine := httpx.NewEngine("https://booking.test")
	if err := handlers.Mount(engine); err != nil {
		w.T.Fatal(err)
	}
	return engine
}

// tenant returns the context of a new tenant in test mode with a connected account.
func (w *world) tenant() context.Context {
	w.T.Helper()
	ctx := pgtest.Ctx(w.T, caller.Test)
	w.connect(ctx)
	return ctx
}

func (w *world) connect(ctx context.Context) domain.Account {
	w.T.Helper()
	mode := string(caller.FromContext(ctx).Mode)
	a, err := w.accounts.Connect(ctx, mode == "live", domain.Keys{
		Publishable: "pk_" + mode + "_1", Secret: domain.Secret("sk_" + mode + "_secret1234567"), Webhook: "whsec_1",
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return a
}

// emitted returns the events of intents, refunds and disputes in the order of their commits.
func (w *world) emitted() (list []*eventsv1.Event) {
	w.T.Helper()
	for _, e := range w.Events() {
		if t := e.GetType(); t != "gateway_account.updated" && t != "account.updated" {
			list = append(list, e)
		}
	}
	return list
}

// types returns the types of these events without their first word, in order.
func (w *world) types() string {
	w.T.Helper()
	var out []string
	for _, e := range w.emitted() {
		_, verb, _ := strings.Cut(e.GetType(), ".")
		out = append(out, verb)
	}
	return strings.Join(out, " ")
}

// response is a response.
type response struct{ apitest.Response }

type header = apitest.Header

// do sends a request as the gateway would and checks the response against the contract.
func (w *world) do(ctx context.Context, method, path, body string, headers ...header) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "gateway", method, "/api/v1"+path, body, headers...)}
}

func (w *world) post(ctx context.Context, body string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/payment-intents", body, headers...)
}

// booked returns the body of a create for a new booking with this amount due.
func (w *world) booked(ctx context.Context, due int64) string {
	return fmt.Sprintf(`{"booking_id":%q}`, w.bookings.Add(ctx, "pending", due, due, "USD").ID)
}

func (a response) is(status int, codeAndField ...string) response {
	a.T.Helper()
	a.Is(status, codeAndField...)
	return a
}

// intent is the response body as a client reads it.
type intent struct {
	ID           string  `json:"id"`
	Status       string  `json:"status"`
	Amount       int64   `json:"amount"`
	Currency     string  `json:"currency"`
	Received     int64   `json:"amount_received"`
	Capturable   int64   `json:"amount_capturable"`
	ClientSecret *string `json:"client_secret"`
	InvoiceID    *string `json:"invoice_id"`
	Failure      *struct {
		Code string `json:"code"`
	} `json:"failure"`
	Version int64 `json:"version"`
}

func (a response) intent() intent { return apitest.Decode[intent](a.Response) }

func key(k string) header { return header("Idempotency-Key: " + k) }

// atOnce runs f n times at the same time.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
