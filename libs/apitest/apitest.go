// Package apitest runs the tests of a service's HTTP API: the real router with its own database, called with requests signed as by
// the gateway or another service. It checks each public response against the contract.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// checker is shared by all tests of a package. It records which responses the tests received.
var (
	checker *contracttest.Checker
	once    sync.Once
)

// Main runs the tests of a package and returns the exit code. When all tests ran, it fails if a response that the
// contract declares for the service was never seen. elsewhere names, by operation, the statuses that the service itself
// never returns.
func Main(m *testing.M, service string, elsewhere map[string][]int) int {
	flag.Parse()
	code := m.Run()
	if code != 0 || checker == nil || !allRan() {
		return code
	}
	for _, missing := range checker.Uncovered(service) {
		var op string
		var status int
		_, _ = fmt.Sscan(missing, &op, &status)
		if !slices.Contains(elsewhere[op], status) {
			fmt.Println("no test has seen:", missing)
			code = 1
		}
	}
	return code
}

// allRan reports whether all tests ran: no flag selected some of them.
func allRan() bool { return flag.Lookup("test.run").Value.String() == "" }

// Env is the environment of one test: the service's name and a database.
type Env struct {
	T       *testing.T
	DB      *pgtest.DB
	service string
}

// New creates the database.
func New(t *testing.T, service string, migrations fs.FS) *Env {
	t.Helper()
	once.Do(func() { checker = contracttest.NewService(t, proto.OpenAPI) })
	return &Env{T: t, DB: pgtest.New(t, migrations), service: service}
}

const secret = "k1:6761746577617967617465776179676174657761796761746577617967617465" //nolint:gosec // of tests

// keys returns the same secret for each name.
func (w *Env) keys(names ...string) caller.Keys {
	w.T.Helper()
	keys, err := caller.ParseKeys(strings.Join(names, "="+secret+",") + "=" + secret)
	if err != nil {
		w.T.Fatal(err)
	}
	return keys
}

// Server verifies the calls of the gateway and of the named peers.
func (w *Env) Server(idempotency *idemstore.Store, peers ...string) *httpx.Server {
	w.T.Helper()
	spec, err := contract.Public()
	if err != nil {
		w.T.Fatal(err)
	}
	return &httpx.Server{
		Service: w.service, Contract: spec, Idempotency: idempotency,
		Verifier: &caller.Verifier{Self: w.service, Keys: w.keys(append(peers, "gateway")...)},
	}
}

// Pages signs cursors.
func (w *Env) Pages() *page.Codec {
	w.T.Helper()
	pages, err := page.NewCodec("c1:637572736f72637572736f72637572736f72637572736f72637572736f726375")
	if err != nil {
		w.T.Fatal(err)
	}
	return pages
}

// Header is a request header, as "Name: value"; without a value it is removed.
type Header string

// Response is a received response.
type Response struct {
	T      *testing.T
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request as the service peer would, on behalf of the caller in ctx.
func (w *Env) Send(ctx context.Context, engine http.Handler, peer, method, target, body string, headers ...Header) Response {
	w.T.Helper()
	req := httptest.NewRequestWithContext(context.WithoutCancel(ctx), method, target, strings.NewReader(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	w.Sign(ctx, req, peer)
	for _, h := range headers {
		name, value, _ := strings.Cut(string(h), ": ")
		if req.Header.Set(name, value); value == "" && name != "Idempotency-Key" {
			req.Header.Del(name)
		}
	}
	done := func(int) {}
	if peer == "gateway" {
		done = w.watchWrite(ctx, method, target)
	}
	rec := httptest.NewRecorder()
	engine.ServeHTTP(rec, req)
	done(rec.Code)
	res := rec.Result()
	defer res.Body.Close()
	if strings.HasPrefix(target, "/api/v1/") {
		checker.Check(w.T, req, res, rec.Body.Bytes())
	}
	return Response{T: w.T, Status: res.StatusCode, Header: res.Header, Body: rec.Body.Bytes()}
}

// Sign signs req as a request that the service peer sends on behalf of the caller in ctx.
func (w *Env) Sign(ctx context.Context, req *http.Request, peer string) {
	w.T.Helper()
	signer := &caller.Signer{From: peer, Keys: w.keys(w.service)}
	signed, err := signer.Sign(caller.FromContext(ctx), w.service, req.Method, req.URL.EscapedPath(), time.Now())
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set(caller.Header, signed)
}

// Is fails the test unless the response has the status and, if given, the error code and the field.
func (a Response) Is(status int, codeAndField ...string) {
	a.T.Helper()
	var e struct {
		Error struct{ Code, Param string }
	}
	_ = json.Unmarshal(a.Body, &e)
	code, field := append(codeAndField, "", "")[0], append(codeAndField, "", "")[1]
	if a.Status != status || code != "" && e.Error.Code != code || field != "" && e.Error.Param != field {
		a.T.Fatalf("got %d, want %d %s\n%s", a.Status, status, strings.Join(codeAndField, " "), a.Body)
	}
}

// Decode reads the body as a client would.
func Decode[T any](a Response) T {
	a.T.Helper()
	var v T
	if err := json.Unmarshal(a.Body, &v); err != nil {
		a.T.Fatalf("%v\n%s", err, a.Body)
	}
	return v
}

// LargestMetadata is the largest metadata that the contract allows: 50 pairs of characters of four bytes each.
func LargestMetadata() string {
	pairs := make([]string, 50)
	for i := range pairs {
		key := strings.Repeat("\U00010000", 38) + fmt.Sprintf("%02d", i)
		pairs[i] = Text(key) + ":" + Text(strings.Repeat("\U00010000", 500))
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// Walk reads a list to its end, with at most limit rows a page, and returns the ids of its rows and the size of each page in bytes.
// It fails the test when a page is empty, has more rows than limit, or exceeds the maximum size of a page.
func (w *Env) Walk(get func(query string) Response, limit int) (ids []string, sizes []int) {
	w.T.Helper()
	for next := ""; ; {
		a := get(fmt.Sprint("limit=", limit) + next)
		a.Is(http.StatusOK)
		p := Decode[struct {
			Data []json.RawMessage
			More bool    `json:"has_more"`
			Next *string `json:"next_cursor"`
		}](a)
		rows := 0
		for _, row := range p.Data {
			rows += len(row)
			ids = append(ids, Decode[struct{ ID string }](Response{T: w.T, Body: row}).ID)
		}
		sizes = append(sizes, rows)
		if len(p.Data) > limit || rows > page.MaxBytes && len(p.Data) > 1 || p.More && len(p.Data) == 0 || p.More != (p.Next != nil) {
			w.T.Fatalf("a page of %d rows and %d bytes, has_more %v, next_cursor %v", len(p.Data), rows, p.More, p.Next)
		}
		if !p.More {
			return ids, sizes
		}
		next = "&cursor=" + url.QueryEscape(*p.Next)
	}
}

// Events returns the events that the relay would send, in order. The type of each must be in the catalogues.
func (w *Env) Events() []*eventsv1.Event {
	w.T.Helper()
	var out []*eventsv1.Event
	err := w.DB.Worker.SystemTx(w.T.Context(), func(ctx context.Context, tx pg.Tx) error {
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
			checkType(w.T, e)
			out = append(out, e)
		}
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return out
}

// checkType fails the test unless the event's type is in type.proto and, if it is not internal, also in the contract.
func checkType(t *testing.T, e *eventsv1.Event) {
	t.Helper()
	kind := e.GetType()
	if constant := "TYPE_" + strings.ToUpper(strings.ReplaceAll(kind, ".", "_")); eventsv1.Type_value[constant] == 0 {
		t.Errorf("event %s: proto/events/v1/type.proto has no %s", kind, constant)
	}
	public := slices.ContainsFunc(proto.EventTypes, func(p proto.EventType) bool { return p.Name == kind })
	if public == e.GetInternal() {
		t.Errorf("event %s: Internal is %v, and EventType of proto/openapi.yaml has it: %v", kind, e.GetInternal(), public)
	}
}

// Types returns the types of the events without their first word, in order.
func (w *Env) Types() string {
	w.T.Helper()
	var out []string
	for _, e := range w.Events() {
		_, verb, _ := strings.Cut(e.GetType(), ".")
		out = append(out, verb)
	}
	return strings.Join(out, " ")
}

// Count runs "select count(*) …" as the owner role, which sees all tenants.
func (w *Env) Count(sql string, args ...any) int {
	w.T.Helper()
	var n int
	if err := w.Owner().QueryRow(w.T.Context(), sql, args...).Scan(&n); err != nil {
		w.T.Fatal(err)
	}
	return n
}

// Exec runs a statement as the owner role.
func (w *Env) Exec(sql string, args ...any) {
	w.T.Helper()
	if _, err := w.Owner().Exec(w.T.Context(), sql, args...); err != nil {
		w.T.Fatal(err)
	}
}

// Impatient returns a pool of the app role that waits for a lock no longer than limit.
func (w *Env) Impatient(limit time.Duration) *pg.DB {
	w.T.Helper()
	return w.open(pg.Options{LockTimeout: limit})
}

// Hold runs a statement as the owner role in a transaction that stays open until release rolls it back.
func (w *Env) Hold(sql string, args ...any) (release func()) {
	w.T.Helper()
	tx, err := w.Owner().Begin(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := tx.Exec(w.T.Context(), sql, args...); err != nil {
		w.T.Fatal(err)
	}
	return func() {
		w.T.Helper()
		if err := tx.Rollback(w.T.Context()); err != nil {
			w.T.Error(err)
		}
	}
}

// HoldKey holds an idempotency key of a caller, as a request does that has not ended.
func (w *Env) HoldKey(c caller.Caller, key string) (release func()) {
	w.T.Helper()
	return w.Hold(idemstore.LockKey, c.Tenant, c.Live(), c.Credential, key)
}

// Waiting returns as soon as transactions wait for exactly the given kinds of locks, in alphabetical order and named as in
// pg_locks. The first transaction that waits for a row waits for a "transactionid", the next one for a "tuple".
func (w *Env) Waiting(want string) {
	w.T.Helper()
	got, owner := "", w.Owner()
	for end := time.Now().Add(10 * time.Second); got != want; time.Sleep(5 * time.Millisecond) {
		err := owner.QueryRow(w.T.Context(), `select coalesce(string_agg(l.locktype, ' ' order by l.locktype), '') from pg_locks l
			join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()`).Scan(&got)
		if err != nil {
			w.T.Fatal(err)
		}
		if time.Now().After(end) {
			w.T.Fatalf("transactions wait for %q, want %q", got, want)
		}
	}
}

// Owner connects with the role that owns the tables.
func (w *Env) Owner() *pgx.Conn {
	w.T.Helper()
	conn, err := pgx.Connect(w.T.Context(), w.DB.OwnerURL)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Text encodes s as a JSON string.
func Text(s string) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(s)
	return strings.TrimSpace(b.String())
}
