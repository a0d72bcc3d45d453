package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/api"
	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/peers/peerstest"
	"holdfast.dev/services/customers/migrations"
)

// elsewhere lists the declared responses that only the gateway, not this service, returns.
var elsewhere = map[string][]int{
	"createCustomer": {403, 429, 504}, "listCustomers": {403, 429, 504}, "getCustomer": {400, 429, 504},
	"updateCustomer": {429, 504}, "deleteCustomer": {400, 413, 429, 504}, "exportCustomer": {400},
	"createQuote": {403, 429, 504}, "listQuotes": {429, 504}, "getQuote": {400, 429, 504}, "updateQuote": {429, 504}, "deleteQuote": {400, 413, 429, 504},
	"sendQuote": {429, 504}, "acceptQuote": {429}, "declineQuote": {429, 504}, "cancelQuote": {429, 504},
	"createLead": {403, 429, 504}, "listLeads": {429, 504}, "getLead": {400, 429, 504}, "updateLead": {429, 504}, "convertLead": {429, 504},
	"listInvoices": {429, 504}, "createInvoice": {403, 429, 504}, "getInvoice": {400, 429, 504}, "updateInvoice": {429, 504}, "deleteInvoice": {400, 413, 429, 504},
	"openInvoice": {429, 504}, "voidInvoice": {429, 504}, "markInvoiceUncollectible": {429, 504},
	"recordInvoicePayment": {429, 504}, "reverseInvoicePayment": {429, 504}, "getInvoicePdf": {400, 429, 504}, "getQuotePdf": {400, 429, 504},
	"createCreditNote": {429, 504}, "listCreditNotes": {403, 429, 504}, "getCreditNote": {400, 429, 504}, "getCreditNotePdf": {400, 429, 504},
}

func TestMain(m *testing.M) { os.Exit(apitest.MainOfWrites(m, "customers", elsewhere)) }

// world contains the real router, app and database of one test.
type world struct {
	*apitest.Env
	engine     http.Handler
	bookings   *peerstest.Bookings
	tenants    *peerstest.Tenants
	payments   *peerstest.Payments
	archive    *peerstest.Archive
	exports    others // the same, unless a test sets it
	clock      *clock
	leads      *app.Leads // of the last engine, like the fields below
	quotes     *app.Quotes
	expiry     *app.QuoteExpiry
	notes      *app.CreditNotes
	accounts   *app.Accounts
	completers app.Completers
	operations operation.Runner
	late       atomic.Int64 // by how much the clock of the idempotency store is ahead
	ahead      atomic.Int64 // by how much the clock of the leads is ahead
	wakes      atomic.Int64
}

// others are the other services in exports.
type others struct {
	bookings, payments app.CustomerResources
	refunds            app.CustomerBodies
	events             app.ObjectEvents
}

// clock is a real time that tests can move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Env: apitest.New(t, "customers", migrations.FS), bookings: &peerstest.Bookings{}, clock: &clock{}, archive: &peerstest.Archive{},
		tenants: &peerstest.Tenants{Info: domain.Invoicing{Prefix: "INV-"}}, payments: &peerstest.Payments{},
	}
	w.exports = others{w.archive.Of("bookings"), w.archive.Of("payment_intents"), w.archive.Of("refunds"), w.archive}
	pgtest.Scoped(t, w.DB)
	w.engine = w.serve(w.DB.App)
	return w
}

func (w *world) serve(db *pg.DB) http.Handler {
	w.T.Helper()
	idempotency := &idemstore.Store{DB: db, Now: func() time.Time { return time.Now().Add(time.Duration(w.late.Load())) }}
	server := w.Server(idempotency, "payments", "bookings")
	wake := func() { w.wakes.Add(1) }
	customers := &app.Customers{Idempotency: idempotency, Contract: server.Contract, Wake: wake}
	w.operations = operation.Runner{DB: db, Keys: idempotency}
	w.completers = app.Completers{Operations: w.operations, Tenants: w.tenants, Worker: w.DB.Worker, Log: slog.New(slog.DiscardHandler)}
	catalogue := &app.Catalogue{DB: db, Bookings: w.bookings}
	w.leads = &app.Leads{
		DB: db, Catalogue: catalogue, Customers: customers, Bookings: w.bookings,
		Wake: wake, Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
	}
	invoices := &app.Invoices{Bookings: w.bookings, Tenants: w.tenants, Catalogue: catalogue, Customers: customers, Wake: wake, Now: w.clock.now}
	w.serveQuotes(db, customers, invoices)
	w.accounts = &app.Accounts{DB: db, Invoices: invoices, Payments: w.payments, Tenants: w.tenants}
	w.notes = &app.CreditNotes{DB: db, Invoices: invoices, Accounts: w.accounts, Payments: w.payments, Tenants: w.tenants}
	handlers := &api.API{
		Quotes:      w.quotes,
		Now:         w.clock.now,
		DB:          db,
		Idempotency: idempotency,
		Customers:   customers,
		Leads:       w.leads,
		Invoices:    invoices,
		CreditNotes: w.notes,
		Accounts:    w.accounts,
		Tenants:     w.tenants,
		Units:       w.bookings,
		Exports:     &app.Exports{DB: db, Invoices: invoices, Bookings: w.exports.bookings, Payments: w.exports.payments, Refunds: w.exports.refunds, Events: w.exports.events},
		Pages:       w.Pages(),
		Server:      server,
	}
	engine := httpx.NewEngine("https://booking.test")
	if err := handlers.Mount(engine); err != nil {
		w.T.Fatal(err)
	}
	return engine
}

// response is a response.
type response struct{ apitest.Response }

type header = apitest.Header

// do sends a request as the gateway would and checks the response against the contract.
func (w *world) do(ctx context.Context, method, path, body string, headers ...header) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "gateway", method, "/api/v1"+path, body, headers...)}
}

func (w *world) from(ctx context.Context, engine http.Handler, peer, method, target, body string, headers ...header) response {
	w.T.Helper()
	return response{w.Send(ctx, engine, peer, method, target, body, headers...)}
}

func (a response) is(status int, codeAndField ...string) response {
	a.T.Helper()
	a.Is(status, codeAndField...)
	return a
}

// customer is the response body as a client reads it.
type customer struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	FirstName string  `json:"first_name"`
	LastName  *string `json:"last_name"`
	Email     string
	Phone     *string
	Company   *string
	Metadata  json.RawMessage
	Mode      string
	Version   int64
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	ErasedAt  *time.Time `json:"erased_at"`
}

func (a response) customer() customer { return decode[customer](a) }

type list struct {
	Data       []customer
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

func (a response) list() list { return decode[list](a) }

func decode[T any](a response) T { return apitest.Decode[T](a.Response) }

// create creates a customer with these fields in addition to the required ones.
func (w *world) create(ctx context.Context, fields string) customer {
	w.T.Helper()
	body := `{"first_name":"Ann","email":"ann@example.com"`
	if fields != "" {
		body += "," + fields
	}
	return w.do(ctx, "POST", "/customers", body+"}").is(201).customer()
}

// in returns ctx with a caller changed by f.
func in(ctx context.Context, f func(*caller.Caller)) context.Context {
	c := caller.FromContext(ctx)
	f(&c)
	return caller.With(ctx, c)
}

func str(s string) string { return apitest.Text(s) }

func deref(s *string) string { return *cmp.Or(s, new(string)) }

// atOnce runs f n times at the same time.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func decodeJSON[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
