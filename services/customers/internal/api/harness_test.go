package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/api"
	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/migrations"
)

// checker is of all tests here, and counts which answers they saw.
var checker atomic.Pointer[contracttest.Checker]

// elsewhere lists the declared answers that this service never gives by itself: the gateway does.
var elsewhere = map[string][]int{
	"createCustomer": {403, 429, 503, 504}, "listCustomers": {403, 429, 503, 504}, "getCustomer": {400, 429, 503, 504},
	"updateCustomer": {429, 503, 504}, "deleteCustomer": {400, 413, 429, 503, 504},
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && checker.Load() != nil {
		for _, missing := range checker.Load().Uncovered("customers") {
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
	gatewayKey  = "gateway=k1:6761746577617967617465776179676174657761796761746577617967617465"
	bookingsKey = "bookings=k1:626f6f6b696e6773626f6f6b696e6773626f6f6b696e6773626f6f6b696e6773"
	cursorKeys  = "c1:637572736f72637572736f72637572736f72637572736f72637572736f726375"
)

// world is the real router, app and database of one test.
type world struct {
	t      *testing.T
	db     *pgtest.DB
	engine http.Handler
	late   atomic.Int64 // by how much the clock of the idempotency store is ahead
	wakes  atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	checker.Store(contracttest.NewService(t, proto.OpenAPI))
	w := &world{t: t, db: pgtest.New(t, migrations.FS)}
	w.engine = w.serve(w.db.App)
	return w
}

func (w *world) serve(db *pg.DB) http.Handler {
	w.t.Helper()
	keys, err := caller.ParseKeys(gatewayKey + "," + bookingsKey)
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
	door := &api.API{
		DB:        db,
		Customers: &app.Customers{DB: db, Idem: answers, Wake: func() { w.wakes.Add(1) }},
		Pages:     pages,
		Server: &httpx.Server{
			Service: "customers", Contract: spec, Idem: answers,
			Verifier: &caller.Verifier{Self: "customers", Keys: keys},
		},
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
	return w.from(ctx, w.engine, "gateway", method, "/api/v1"+path, body, headers...)
}

func (w *world) from(ctx context.Context, engine http.Handler, peer, method, target, body string, headers ...header) answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(context.WithoutCancel(ctx), method, target, strings.NewReader(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	keys, err := caller.ParseKeys("customers" + strings.TrimPrefix(map[string]string{"gateway": gatewayKey, "bookings": bookingsKey}[peer], peer))
	if err != nil {
		w.t.Fatal(err)
	}
	signer := &caller.Signer{From: peer, Keys: keys}
	signed, err := signer.Sign(caller.Must(ctx), "customers", method, req.URL.EscapedPath(), time.Now())
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
	engine.ServeHTTP(rec, req)
	res := rec.Result()
	defer func() { _ = res.Body.Close() }()
	if strings.HasPrefix(target, "/api/v1/") {
		checker.Load().Check(w.t, req, res, rec.Body.Bytes())
	}
	return answer{t: w.t, Status: res.StatusCode, Header: res.Header, Body: rec.Body.Bytes()}
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

// customer is the body as a client reads it.
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
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func (a answer) customer() customer { return decode[customer](a) }

type list struct {
	Data       []customer
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

func (a answer) list() list { return decode[list](a) }

func decode[T any](a answer) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.Body, &v); err != nil {
		a.t.Fatalf("%v\n%s", err, a.Body)
	}
	return v
}

// create makes a customer with these fields beside the required ones.
func (w *world) create(ctx context.Context, fields string) customer {
	w.t.Helper()
	body := `{"first_name":"Ann","email":"ann@example.com"`
	if fields != "" {
		body += "," + fields
	}
	return w.do(ctx, "POST", "/customers", body+"}").is(201).customer()
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
	var out []string
	for _, e := range w.events() {
		out = append(out, strings.TrimPrefix(e.Type, "customer."))
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

func deref(s *string) string { return *cmp.Or(s, new(string)) }
