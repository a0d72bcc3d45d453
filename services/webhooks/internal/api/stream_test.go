package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/app"
)

// reads counts the batches that a pool sends, by audience. Each read of a stream is one batch.
type reads struct {
	mu sync.Mutex
	of map[app.Audience]int
}

func (r *reads) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c := caller.FromContext(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[app.Audience{Tenant: c.Tenant, Livemode: c.Live()}]++
	return ctx
}

func (*reads) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*reads) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (*reads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*reads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *reads) count(ctx context.Context) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[audience(ctx)]
}

func audience(ctx context.Context) app.Audience {
	c := caller.FromContext(ctx)
	return app.Audience{Tenant: c.Tenant, Livemode: c.Live()}
}

// counted makes streams read only when they are woken, from a pool that counts reads.
func (w *world) counted() *reads {
	w.T.Helper()
	r := &reads{of: map[app.Audience]int{}}
	db, err := pg.Open(w.T.Context(), w.DB.AppURL, pg.Options{Tracer: r})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(db.Close)
	w.streams.MaxDuration, w.streams.PollInterval = time.Hour, time.Hour
	w.engine = w.serve(db)
	return r
}

// openStream opens a stream of ctx's caller on a real server. The stream ends with the test, or when closeStream is called.
func (w *world) openStream(ctx context.Context) (closeStream func()) {
	w.T.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.Sign(ctx, r, "gateway")
		w.engine.ServeHTTP(rw, r)
	}))
	reading, end := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(reading, "GET", srv.URL+"/api/v1/events/stream", nil)
	if err != nil {
		w.T.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		w.T.Fatalf("a stream: %d", res.StatusCode)
	}
	closeStream = sync.OnceFunc(func() {
		end()
		_ = res.Body.Close() // the test ended the stream
		srv.Close()          // once the handler has returned
	})
	w.T.Cleanup(closeStream)
	return closeStream
}

// until waits until a condition is true, and fails after 20 s.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// firstReads is the number of reads at the start of a stream: the current position, and the events after it.
const firstReads = 2

// Events of one tenant and mode cause no reads of the streams of another tenant or mode.
func TestStreamsAreWokenForTheirOwnEventsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counter := w.counted()
	tenant := ids.New[ids.TenantPrefix]()
	mine, live, other := w.as(tenant, caller.Test), w.as(tenant, caller.Live), w.ctx()
	for _, ctx := range []context.Context{mine, live, other} {
		w.openStream(ctx)
		until(t, "a stream did not start", func() bool { return counter.count(ctx) == firstReads })
	}
	for range 20 {
		w.ingest(mine, "customer.created", 3)
	}
	until(t, "the stream of the tenant was not woken", func() bool { return counter.count(mine) > firstReads })
	if n, m := counter.count(other), counter.count(live); n != firstReads || m != firstReads {
		t.Errorf("another tenant's stream read %d times, the other mode's %d", n-firstReads, m-firstReads)
	}
}

// A stream reads once per MinInterval, regardless of how often it is woken, and once more after the last broadcast.
func TestStreamsReadOncePerInterval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.notifier.MinInterval = time.Hour
	counter := w.counted()
	ctx := w.ctx()
	w.openStream(ctx)
	until(t, "the stream did not start", func() bool { return counter.count(ctx) == firstReads })
	for range 50 {
		w.ingest(ctx, "customer.created", 1)
	}
	until(t, "the stream was not woken", func() bool { return counter.count(ctx) > firstReads })
	if n := counter.count(ctx); n != firstReads+1 {
		t.Errorf("50 events within one interval made the stream read %d times", n-firstReads)
	}
}

// A tenant can have a hundred open streams. One more is 429 until one of them ends. Other tenants are not affected.
func TestAHundredStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counted()
	tenant := ids.New[ids.TenantPrefix]()
	ctx, live := w.as(tenant, caller.Test), w.as(tenant, caller.Live)
	closeFirst := w.openStream(ctx)
	for i := range 99 {
		w.openStream([]context.Context{ctx, live}[i%2])
	}
	for _, full := range []context.Context{ctx, live} {
		if a := w.do(full, "GET", "/events/stream", "").is(429, "rate_limited"); a.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	w.openStream(w.ctx())
	closeFirst()
	w.openStream(live)
}

// The largest events are sent completely and in order, one per read, without a pause between the reads. Nothing wakes this stream.
func TestStreamOfTheLargestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	const n, size = 12, 630_000
	w.ingest(ctx, "customer.created", n+1)
	w.Exec(`update events set body = convert_to(replace(convert_from(body, 'UTF8'), '<&>', repeat('x', $1)), 'UTF8')`, size)
	rows, err := w.Owner().Query(ctx, `select id from events order by updated_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	order, err := pgx.CollectRows(rows, pgx.RowTo[ids.Event])
	if err != nil {
		t.Fatal(err)
	}
	counter := w.counted()
	reading, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	res := w.open(reading, w.server(ctx), "Last-Event-ID", order[0].String())
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 2*size)
	for i, id := range order[1:] {
		message := map[string]string{}
		for lines.Scan() && (lines.Text() != "" || message["data"] == "") {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			message[field] = value
		}
		var body struct{ ID, Type string }
		if err := json.Unmarshal([]byte(message["data"]), &body); err != nil || len(message["data"]) < size {
			t.Fatalf("message %d: %d bytes of data, %v", i, len(message["data"]), err)
		}
		if want := id.String(); message["id"] != want || body.ID != want || message["event"] != body.Type {
			t.Errorf("message %d is %s of %s, want %s", i, message["id"], body.ID, want)
		}
	}
	if reads := counter.count(ctx) - 1; reads != n { // one reads the start position
		t.Errorf("%d reads of %d events", reads, n)
	}
}

// A stream ends within PollInterval after its tenant is suspended. Those of other tenants stay open.
func TestSuspensionEndsTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counted()
	w.streams.PollInterval = 20 * time.Millisecond
	ctx, other := w.ctx(), w.ctx()
	read := func(ctx context.Context) (ended chan struct{}) {
		res := w.open(ctx, w.server(ctx), "Accept", "text/event-stream")
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}()
		return ended
	}
	ended, stays := read(ctx), read(other)
	err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into tenant_states (tenant_id, livemode, status, version) values (@tenant, @live, 'suspended', 1)`, pg.Args{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the stream did not end", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	select {
	case <-stays:
		t.Error("the stream of another tenant ended")
	default:
	}
}
