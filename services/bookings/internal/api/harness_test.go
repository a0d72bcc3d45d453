package api_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/api"
	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/peers/peerstest"
	"holdfast.dev/services/bookings/migrations"
)

// elsewhere lists the declared responses that only the gateway, not this service, returns.
var elsewhere = map[string][]int{
	"createBooking": {403, 429, 504}, "listBookings": {429, 504}, "getBooking": {400, 429, 504},
	"updateBooking": {429, 504}, "cancelBooking": {429, 504},
	"repriceBooking": {429, 504}, "listBookingPayments": {429, 504},
	"getTestClock": {400, 429, 500, 503, 504}, "setTestClock": {429, 504}, "deleteTestClock": {400, 413, 429, 504},
	"listServices": {403, 429, 504}, "getService": {400, 429, 504},
	"listUnits": {403, 429, 504}, "getUnit": {400, 429, 504},
	"listPackages": {403, 429, 504}, "getPackage": {400, 429, 504},
	"listHolidayRules": {403, 429, 504}, "getHolidayRule": {400, 429, 504},
	"createService": {403, 429, 504}, "updateService": {429, 504},
	"createUnit": {403, 429, 504}, "updateUnit": {429, 504},
	"createPackage": {403, 429, 504}, "updatePackage": {429, 504},
	"createHolidayRule": {403, 429, 504}, "updateHolidayRule": {429, 504},
	"createClosure": {403, 429, 504}, "listClosures": {403, 429, 504}, "getClosure": {400, 429, 504},
	"updateClosure": {429, 504}, "deleteClosure": {400, 413, 429, 504},
	"listCalendarFeeds": {403, 429, 504}, "createCalendarFeed": {403, 429, 504}, "getCalendarFeed": {400, 429, 504},
	"deleteCalendarFeed": {400, 413, 429, 504}, "getCalendar": {400, 429, 504},
	"listAvailability": {400, 403, 429, 504}, "explainAvailability": {400, 403, 429, 504},
}

// TestMain excludes the audit records of the test clock, because identity owns that clock and writes them.
func TestMain(m *testing.M) {
	os.Exit(apitest.MainOfWrites(m, "bookings", elsewhere, "setTestClock", "deleteTestClock"))
}

// world contains the real router, app and database of one test. The other services are fakes that store state.
type world struct {
	*apitest.Env
	engine    http.Handler
	customers *peerstest.Customers
	tenants   *peerstest.Tenants
	payments  *peerstest.Payments
	clock     *clock
	expiry    *app.Expiry

	credentials *peerstest.Credentials
	feeds       *app.Feeds

	maxWait time.Duration // how long to wait for the expiry of quotes; 0: 5 s
	late    atomic.Int64  // by how much the clock of the idempotency store is ahead
}

// clock is the real time, which tests can move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *clock) moveTo(t time.Time)   { c.ahead.Store(int64(time.Until(t))) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Env: apitest.New(t, "bookings", migrations.FS), clock: &clock{},
		customers: &peerstest.Customers{}, tenants: &peerstest.Tenants{}, credentials: &peerstest.Credentials{},
		payments: &peerstest.Payments{},
	}
	pgtest.Scoped(t, w.DB)
	w.engine = w.serve(w.DB.App)
	return w
}

func (w *world) serve(db *pg.DB) http.Handler {
	w.T.Helper()
	idempotency := &idemstore.Store{DB: db, Now: func() time.Time { return time.Now().Add(time.Duration(w.late.Load())) }}
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		w.T.Fatal(err)
	}
	idempotency.Box = box
	bookings := &app.Bookings{
		DB: db, Directory: w.customers, Tenants: w.tenants, Accounts: w.payments,
		Numbers: &numbers.Numbers{DB: db, Table: "booking_counters", Format: "B-%06d"}, Wake: func() {}, Now: w.clock.now,
	}
	w.expiry = &app.Expiry{Bookings: bookings, Worker: w.DB.Worker, Log: slog.New(slog.DiscardHandler)}
	w.feeds = app.NewFeeds(app.FeedOptions{DB: db, Wake: func() {}, PublicURL: "https://api.test", Now: w.clock.now, Credentials: w.credentials})
	handlers := &api.API{
		DB:          db,
		Idempotency: idempotency,
		Bookings:    bookings,
		Catalogue:   &app.Catalogue{Bookings: bookings, Wake: func() {}, Now: w.clock.now},
		Clocks: &app.Clocks{
			DB: db, Owner: w.tenants, Bookings: bookings, Quotes: w.customers, Log: slog.New(slog.DiscardHandler), MaxWait: cmp.Or(w.maxWait, 5*time.Second),
		},
		Feeds:     w.feeds,
		Directory: w.customers,
		Pages:     w.Pages(),
		Server:    w.Server(idempotency, "customers", "payments", "console"),
		Now:       w.clock.now,
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

func (w *world) post(ctx context.Context, body string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/bookings", body, headers...)
}

// from sends an internal call as the service peer would.
func (w *world) from(ctx context.Context, peer, method, path, body string, headers ...header) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, peer, method, "/internal/v1"+path, body, headers...)}
}

// book creates a booking with these fields.
func (w *world) book(ctx context.Context, format string, args ...any) booking {
	w.T.Helper()
	return w.post(ctx, fmt.Sprintf("{"+format+"}", args...)).is(201).booking()
}

func (w *world) patch(ctx context.Context, id, body string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "PATCH", "/bookings/"+id, body, headers...)
}

func (w *world) get(ctx context.Context, id string) booking {
	w.T.Helper()
	return w.do(ctx, "GET", "/bookings/"+id, "").is(200).booking()
}

func (a response) is(status int, codeAndField ...string) response {
	a.T.Helper()
	a.Is(status, codeAndField...)
	return a
}

func (a response) booking() booking { return decode[booking](a) }

func decode[T any](a response) T { return apitest.Decode[T](a.Response) }

func str(s string) string { return apitest.Text(s) }

// in returns ctx with a caller changed by f.
func in(ctx context.Context, f func(*caller.Caller)) context.Context {
	c := caller.FromContext(ctx)
	f(&c)
	return caller.With(ctx, c)
}

func zoned(ctx context.Context, zone string) context.Context {
	return in(ctx, func(c *caller.Caller) { c.Timezone = zone })
}

func both(tenant ids.Tenant, t *testing.T) (test, live context.Context) {
	return pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live)
}
