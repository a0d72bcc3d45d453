package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/api"
	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/peers/peerstest"
	"holdfast.dev/services/bookings/migrations"
)

// checker is of all tests here, and counts which answers they saw.
var checker atomic.Pointer[contracttest.Checker]

// elsewhere lists the declared answers that this service never gives by itself: the gateway does.
var elsewhere = map[string][]int{
	"createBooking": {403, 429, 504}, "listBookings": {429, 503, 504}, "getBooking": {400, 429, 503, 504},
	"updateBooking": {429, 503, 504}, "cancelBooking": {429, 503, 504},
	"repriceBooking": {429, 503, 504},
	"getTestClock":   {400, 429, 500, 503, 504}, "setTestClock": {429, 504}, "deleteTestClock": {400, 413, 429, 504},
	"listServices": {403, 429, 503, 504}, "getService": {400, 429, 503, 504},
	"listUnits": {403, 429, 503, 504}, "getUnit": {400, 429, 503, 504},
	"listPackages": {403, 429, 503, 504}, "getPackage": {400, 429, 503, 504},
	"listHolidayRules": {403, 429, 503, 504}, "getHolidayRule": {400, 429, 503, 504},
	"createService": {403, 429, 503, 504}, "updateService": {429, 503, 504},
	"createUnit": {403, 429, 503, 504}, "updateUnit": {429, 503, 504},
	"createPackage": {403, 429, 503, 504}, "updatePackage": {429, 503, 504},
	"createHolidayRule": {403, 429, 503, 504}, "updateHolidayRule": {429, 503, 504},
	"listAvailability": {400, 403, 429, 504}, "explainAvailability": {400, 403, 429, 504},
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && checker.Load() != nil {
		for _, missing := range checker.Load().Uncovered("bookings") {
			var op string
			var status int
			_, _ = fmt.Sscan(missing, &op, &status)
			if !slices.Contains(elsewhere[op], status) {
				fmt.Println("no test has seen:", missing)
				code = 1
			}
		}
	}
	os.Exit(code)
}

const (
	gatewayKey = "gateway=k1:6761746577617967617465776179676174657761796761746577617967617465"
	cursorKeys = "c1:637572736f72637572736f72637572736f72637572736f72637572736f726375"
)

// world is the real router, app and database of one test; the other services are fakes that keep state.
type world struct {
	t         *testing.T
	db        *pgtest.DB
	engine    http.Handler
	customers *peerstest.Customers
	tenants   *peerstest.Tenants
	clock     *clock
	expiry    *app.Expiry
	late      atomic.Int64 // by how much the clock of the idempotency store is ahead
}

// clock is a real time that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *clock) moveTo(t time.Time)   { c.ahead.Store(int64(time.Until(t))) }

func newWorld(t *testing.T) *world {
	t.Helper()
	once.Do(func() { checker.Store(contracttest.NewService(t, proto.OpenAPI)) })
	w := &world{
		t: t, db: pgtest.New(t, migrations.FS), clock: &clock{},
		customers: &peerstest.Customers{}, tenants: &peerstest.Tenants{},
	}
	w.engine = w.serve(w.db.App)
	return w
}

var once sync.Once

func (w *world) serve(db *pg.DB) http.Handler {
	w.t.Helper()
	keys, err := caller.ParseKeys(gatewayKey)
	if err != nil {
		w.t.Fatal(err)
	}
	pages, err := page.NewCodec(cursorKeys)
	if err != nil {
		w.t.Fatal(err)
	}
	spec, err := contract.Load(proto.OpenAPI)
	if err != nil {
		w.t.Fatal(err)
	}
	answers := &idem.Store{DB: db, Now: func() time.Time { return time.Now().Add(time.Duration(w.late.Load())) }}
	bookings := &app.Bookings{
		DB: db, Idem: answers, Directory: w.customers, Tenants: w.tenants,
		Numbers: &app.Numbers{DB: db}, Wake: func() {}, Now: w.clock.now,
	}
	w.expiry = &app.Expiry{Bookings: bookings, Worker: w.db.Worker, Log: slog.New(slog.DiscardHandler)}
	door := &api.API{
		DB:        db,
		Bookings:  bookings,
		Catalogue: app.NewCatalogue(db, answers),
		Clocks:    &app.Clocks{DB: db, Idem: answers, Owner: w.tenants, Bookings: bookings},
		Directory: w.customers,
		Pages:     pages,
		Server: &httpx.Server{
			Service: "bookings", Contract: spec, Idem: answers,
			Verifier: &caller.Verifier{Self: "bookings", Keys: keys},
		},
		Now: w.clock.now,
	}
	engine := httpx.NewEngine()
	if err := door.Mount(engine); err != nil {
		w.t.Fatal(err)
	}
	return engine
}

// answer is what came back.
type answer struct {
	t      *testing.T
	Status int
	Header http.Header
	Body   []byte
}

// header is a request header, as "Name: value".
type header string

// do sends a request as the gateway would and checks the answer against the contract.
func (w *world) do(ctx context.Context, method, path, body string, headers ...header) answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(context.WithoutCancel(ctx), method, "/api/v1"+path, strings.NewReader(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	keys, err := caller.ParseKeys("bookings" + strings.TrimPrefix(gatewayKey, "gateway"))
	if err != nil {
		w.t.Fatal(err)
	}
	signed, err := (&caller.Signer{From: "gateway", Keys: keys}).Sign(caller.Must(ctx), "bookings", method, req.URL.EscapedPath(), time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set(caller.Header, signed)
	for _, h := range headers {
		name, value, _ := strings.Cut(string(h), ": ")
		if req.Header.Set(name, value); value == "" && name != "Idempotency-Key" {
			req.Header.Del(name)
		}
	}
	rec := httptest.NewRecorder()
	w.engine.ServeHTTP(rec, req)
	res := rec.Result()
	defer func() { _ = res.Body.Close() }()
	checker.Load().Check(w.t, req, res, rec.Body.Bytes())
	return answer{t: w.t, Status: res.StatusCode, Header: res.Header, Body: rec.Body.Bytes()}
}

func (w *world) post(ctx context.Context, body string, headers ...header) answer {
	w.t.Helper()
	return w.do(ctx, "POST", "/bookings", body, headers...)
}

// book makes a booking with these fields.
func (w *world) book(ctx context.Context, format string, args ...any) booking {
	w.t.Helper()
	return w.post(ctx, fmt.Sprintf("{"+format+"}", args...)).is(201).booking()
}

func (w *world) patch(ctx context.Context, id, body string, headers ...header) answer {
	w.t.Helper()
	return w.do(ctx, "PATCH", "/bookings/"+id, body, headers...)
}

func (w *world) get(ctx context.Context, id string) booking {
	w.t.Helper()
	return w.do(ctx, "GET", "/bookings/"+id, "").is(200).booking()
}

// is fails the test unless the answer has the status and, when given, the error code and the field.
func (a answer) is(status int, codeAndField ...string) answer {
	a.t.Helper()
	var e struct {
		Error struct{ Code, Param string }
	}
	_ = json.Unmarshal(a.Body, &e)
	code, field := append(codeAndField, "", "")[0], append(codeAndField, "", "")[1]
	if a.Status != status || code != "" && e.Error.Code != code || field != "" && e.Error.Param != field {
		a.t.Fatalf("got %d, want %d %s\n%s", a.Status, status, strings.Join(codeAndField, " "), a.Body)
	}
	return a
}

func (a answer) booking() booking { return decode[booking](a) }

func decode[T any](a answer) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.Body, &v); err != nil {
		a.t.Fatalf("%v\n%s", err, a.Body)
	}
	return v
}

// events are those that the relay would send, in order.
func (w *world) events() []*eventsv1.Event {
	w.t.Helper()
	var out []*eventsv1.Event
	err := w.db.Worker.Worker(w.t.Context(), func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `select message from outbox order by seq`)
		if err != nil {
			return err
		}
		messages, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		for _, m := range messages {
			e, err := outbox.Decode(m)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// types are the types of the events, in order.
func (w *world) types() string {
	w.t.Helper()
	var out []string
	for _, e := range w.events() {
		out = append(out, strings.TrimPrefix(e.GetType(), "booking."))
	}
	return strings.Join(out, " ")
}

// count runs "select count(*) …" as the owner, who sees all tenants.
func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.owner().QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.owner().Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) owner() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.db.OwnerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// str is a JSON string.
func str(s string) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(s)
	return strings.TrimSpace(b.String())
}

// in returns ctx with a caller changed by f.
func in(ctx context.Context, f func(*caller.Caller)) context.Context {
	c := caller.Must(ctx)
	f(&c)
	return caller.With(ctx, c)
}

func zoned(ctx context.Context, zone string) context.Context {
	return in(ctx, func(c *caller.Caller) { c.Timezone = zone })
}

func both(tenant ids.Tenant, t *testing.T) (test, live context.Context) {
	return pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live)
}
