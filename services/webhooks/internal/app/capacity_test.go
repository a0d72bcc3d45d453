package app_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
)

// largest is about the size of the largest possible event.
const largest = 631 << 10

// large returns an event of that size.
func (w *world) large(ctx context.Context) domain.Event {
	e := w.event(ctx)
	e.Object = fmt.Appendf(nil, `{"id":%q,"first_name":"Ada","notes":%q}`, e.ObjectID, strings.Repeat("x", largest-600))
	return e
}

// blockingSender responds when it is released, and counts attempts and bytes in flight.
type blockingSender struct {
	mu       sync.Mutex
	bytes    map[string]int // by URL
	started  map[string]int
	released chan struct{}
	once     sync.Once
}

// release makes all attempts complete. A test defers it, because the dispatcher waits for them when it stops.
func (h *blockingSender) release() { h.once.Do(func() { close(h.released) }) }

func newBlockingSender() *blockingSender {
	return &blockingSender{bytes: map[string]int{}, started: map[string]int{}, released: make(chan struct{})}
}

func (h *blockingSender) Send(_ context.Context, d domain.Outgoing) domain.Response {
	h.mu.Lock()
	h.bytes[d.URL] += len(d.Body)
	h.started[d.URL]++
	h.mu.Unlock()
	<-h.released
	h.mu.Lock()
	h.bytes[d.URL] -= len(d.Body)
	h.mu.Unlock()
	return domain.Response{Status: 200}
}

func (h *blockingSender) total() (sum int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.bytes {
		sum += n
	}
	return sum
}

func (h *blockingSender) count(url string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.started[url]
}

// run starts a dispatcher and stops it when the test ends.
func (w *world) run(d *app.Dispatcher) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// The bodies in flight have their own limit. No tenant uses more than its share of it, so a later tenant can deliver. All
// deliveries are made in the end.
func TestBytesInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newBlockingSender()
	defer h.release()
	w.dispatcher.Sender, w.dispatcher.Now = h, time.Now
	w.dispatcher.MaxConcurrency, w.dispatcher.MaxBytes, w.dispatcher.BatchBytes = 1024, 24<<20, 2<<20
	const tenants, each = 4, 10
	url := func(i int) string { return fmt.Sprintf("http://large.test/%d", i) }
	for i := range tenants {
		ctx := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
		w.endpoint(ctx, url(i), limits(100, 1000))
		var list []domain.Event
		for range each {
			list = append(list, w.large(ctx))
		}
		if err := w.intake.Ingest(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	second := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
	w.endpoint(second, "http://small.test/")
	w.markFast()
	w.run(w.dispatcher)
	const share = 4 // of the largest bodies in an eighth of the bytes
	await(t, "every tenant's share", func() bool {
		for i := range tenants {
			if h.count(url(i)) < share {
				return false
			}
		}
		return true
	})
	w.ingest(second, 3)
	await(t, "the small tenant's deliveries", func() bool { return h.count("http://small.test/") == 3 })
	for i := range tenants {
		if n := h.count(url(i)); n != share {
			t.Errorf("tenant %d has %d in flight, want %d", i, n, share)
		}
	}
	if n := h.total(); n > w.dispatcher.MaxBytes {
		t.Errorf("%d bytes are in flight", n)
	}
	h.release()
	await(t, "all", func() bool {
		return len(w.texts(`select '' from deliveries where status = 'succeeded'`)) == tenants*each+3
	})
}

// A process with little memory delivers the largest events to receivers of many tenants, which respond late. The test runs it as a
// separate process and measures its heap.
func TestMemoryOfLargeBodies(t *testing.T) {
	t.Parallel()
	const child, tenants, each, bytes, most = "TEST_MEMORY_OF_LARGE_BODIES", 16, 20, 32 << 20, 128 << 20
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryOfLargeBodies$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "GOMEMLIMIT=64MiB")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	w := newWorld(t)
	h := newBlockingSender()
	defer h.release()
	w.dispatcher.Sender, w.dispatcher.Now, w.dispatcher.MaxConcurrency, w.dispatcher.MaxBytes = h, time.Now, 1024, bytes
	for i := range tenants {
		ctx := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
		w.endpoint(ctx, fmt.Sprintf("http://large.test/%d", i), limits(100, 1000))
		for range each / 5 {
			if err := w.intake.Ingest(ctx, []domain.Event{w.large(ctx), w.large(ctx), w.large(ctx), w.large(ctx), w.large(ctx)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.markFast()
	w.run(w.dispatcher)
	await(t, "the attempts that the limits allow", func() bool { return w.idle(h) })
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > most {
		t.Errorf("the heap has %d MiB while %d MiB of bodies are in flight", m.HeapAlloc>>20, h.total()>>20)
	}
	h.release()
	await(t, "all", func() bool {
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > most {
			t.Errorf("the heap had %d MiB", m.HeapAlloc>>20)
		}
		return len(w.texts(`select '' from deliveries where status = 'succeeded'`)) == tenants*each
	})
}

// One transaction claims at most a batch of bytes, but at least one body.
func TestBytesOfAClaim(t *testing.T) {
	t.Parallel()
	for batch, want := range map[int]int{3 * largest: 3, 1: 1} {
		w := newWorld(t)
		w.dispatcher.BatchBytes = batch
		w.endpoint(w.ctx, hook)
		w.markFast()
		if err := w.intake.Ingest(w.ctx, []domain.Event{w.large(w.ctx), w.large(w.ctx), w.large(w.ctx), w.large(w.ctx)}); err != nil {
			t.Fatal(err)
		}
		if n := w.step(); n != want {
			t.Errorf("a batch of %d bytes claims %d", batch, n)
		}
		if n := w.drain(); n != 4-want {
			t.Errorf("%d more", n)
		}
	}
}

// Sixteen tenants have two endpoints each that do not respond. The endpoint of another tenant responds immediately, and its
// deliveries do not wait for the others, regardless of the previous speeds of the endpoints.
func TestSlowReceivers(t *testing.T) {
	t.Parallel()
	const tenants, each, events, good = 16, 2, 120, 50
	slow := func(i int) string { return fmt.Sprintf("http://slow.test/%d", i) }
	for name, before := range map[string]func(w *world){
		"slow": func(w *world) {
			w.exec(`update endpoint_queues set slow_until = $1`, time.Now().Add(time.Hour))
		},
		"unknown": func(*world) {},
		"fast":    func(w *world) { w.markFast() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := newBlockingSender()
			defer h.release()
			w.dispatcher.Sender, w.dispatcher.Now, w.dispatcher.MaxConcurrency = &router{slow: h, receivers: w.receivers}, time.Now, 1024
			for i := range tenants {
				ctx := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
				for j := range each {
					w.endpoint(ctx, slow(i*each+j), limits(100, 1000))
				}
				w.ingest(ctx, events)
			}
			before(w)
			w.run(w.dispatcher)
			await(t, "the slow endpoints' attempts", func() bool { return w.idle(h) })
			n := 0
			for i := range tenants * each {
				n += h.count(slow(i))
			}
			if n > 1024*16/17+1 || name == "slow" && n > 512 || name == "unknown" && n > 768 {
				t.Errorf("they have %d in flight", n)
			}
			w.endpoint(w.ctx, hook, limits(domain.DefaultInFlight, 1000))
			start := time.Now()
			w.ingest(w.ctx, good)
			await(t, "the good endpoint's deliveries", func() bool { return len(w.receivers.got(hook)) == good })
			if took := time.Since(start); took > 9*time.Second { // an attempt can take 10 s
				t.Errorf("they took %v", took)
			}
		})
	}
}

// router sends requests for slow receivers to slow.
type router struct {
	slow      *blockingSender
	receivers *receivers
}

func (r *router) Send(ctx context.Context, d domain.Outgoing) domain.Response {
	if strings.HasPrefix(d.URL, "http://slow.test/") {
		return r.slow.Send(ctx, d)
	}
	return r.receivers.Send(ctx, d)
}

// idle reports that no attempt has started for a while.
func (w *world) idle(h *blockingSender) bool {
	sum := func() (n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, started := range h.started {
			n += started
		}
		return n
	}
	before := sum()
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if sum() != before {
			return false
		}
	}
	return before > 0
}

// An endpoint with a slow attempt is slow for all processes, until its attempts have been fast for a minute.
func TestSpeedIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoint(w.ctx, hook, limits(100, domain.DefaultPerSecond))
	slow := func() string {
		return w.texts(`select coalesce((slow_until > '` + w.Now().Format(time.RFC3339Nano) + `')::text, 'unknown') from endpoint_queues`)[0]
	}
	if got := slow(); got != "unknown" {
		t.Errorf("a new endpoint is slow: %s", got)
	}
	w.ingest(w.ctx, 20)
	if n := w.step(); n != domain.UnknownMaxInFlight {
		t.Errorf("a new endpoint has %d in flight", n)
	}
	if n := w.step(); n != 20-domain.UnknownMaxInFlight {
		t.Errorf("an endpoint that has responded has %d in flight", n)
	}
	if got := slow(); got != "false" {
		t.Errorf("after fast responses it is slow: %s", got)
	}
	w.receivers.at(hook, func(domain.Outgoing) domain.Response { return domain.Response{Status: 200, Took: 2 * time.Second} })
	w.ingest(w.ctx, 1)
	w.drain()
	if got := slow(); got != "true" {
		t.Errorf("after a slow response it is slow: %s", got)
	}
	w.dispatcher.MaxConcurrency = 64
	w.ingest(w.ctx, 60)
	w.Move(time.Second)
	if n := w.step(); n != 32 {
		t.Errorf("a slow endpoint has %d of 64", n)
	}
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	w.dispatcher = w.newDispatcher(box)
	w.dispatcher.MaxConcurrency = 32
	w.Move(time.Second)
	if n := w.step(); n != 16 {
		t.Errorf("another process starts %d of 32", n)
	}
}

// An attempt that has been in flight for a second counts as slow before it completes, even if the endpoint was always fast.
func TestLateAttemptsCountAsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newBlockingSender()
	defer h.release()
	w.dispatcher.Sender, w.dispatcher.MaxConcurrency = h, 64
	other := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
	many := limits(100, 1000)
	w.endpoint(w.ctx, hook, many)
	w.markFast()
	slow := w.endpoint(other, "http://slow.test/", many)
	w.exec(`update endpoint_queues set slow_until = $1 where endpoint_id = $2`, w.Now().Add(time.Hour), slow.ID)
	w.ingest(w.ctx, 20)
	w.run(w.dispatcher)
	await(t, "twenty attempts", func() bool { return h.count(hook) == 20 })
	w.Move(domain.SlowAfter)
	w.ingest(other, 30)
	await(t, "the rest of the half for slow endpoints", func() bool { return w.idle(h) && h.count("http://slow.test/") > 0 })
	if n := h.count("http://slow.test/"); n != 12 {
		t.Errorf("the slow endpoint has %d in flight with 20 late attempts, want 12 of the 32", n)
	}
}
