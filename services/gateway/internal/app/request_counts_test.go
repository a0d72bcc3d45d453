package app_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/store"
)

// consumer adds each message once, as logs does. It can store messages and return an error all the same.
type consumer struct {
	t   *testing.T
	mu  sync.Mutex
	err error
	// lossy: a message does not arrive if err is set
	lossy   bool
	batches map[string]string // key by id
	sums    map[string]int64  // by tenant and class
	largest int
}

func (c *consumer) Produce(_ context.Context, list ...kafkax.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range list {
		if c.lossy {
			break
		}
		var in eventsv1.RequestLogs
		if err := proto.Unmarshal(m.Value, &in); err != nil || len(in.GetEntries()) != 0 || len(in.GetCounts()) != 1 {
			c.t.Errorf("%d entries, %d counts, %v", len(in.GetEntries()), len(in.GetCounts()), err)
		}
		c.largest = max(c.largest, len(m.Value))
		batch := in.GetCounts()[0]
		if _, seen := c.batches[string(batch.GetId())]; seen {
			continue
		}
		c.batches[string(batch.GetId())] = m.Key
		for _, n := range batch.GetCounts() {
			c.sums[string(n.GetTenantUuid())+n.GetClass()] += n.GetRequests()
		}
	}
	return c.err
}

func (c *consumer) set(lossy bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lossy, c.err = lossy, err
}

func (c *consumer) sum(from *caller.Caller, class string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := from.Tenant.UUID()
	return c.sums[string(u[:])+class]
}

func newConsumer(t *testing.T) *consumer {
	return &consumer{t: t, batches: map[string]string{}, sums: map[string]int64{}}
}

func liveCaller() *caller.Caller {
	return &caller.Caller{Tenant: ids.New[ids.TenantPrefix](), Mode: caller.Live}
}

func inMemory(t *testing.T) *store.Counts { return counts(t, "") }

// counts opens the counts in a file.
func counts(t *testing.T, path string) *store.Counts {
	t.Helper()
	c, err := store.OpenCounts(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Requests are counted once although Kafka is away, stores messages without confirming them, and returns.
func TestRequestCountsDespiteOutages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kafka, from := newConsumer(t), liveCaller()
		m := app.NewMetrics(prometheus.NewRegistry())
		counts := app.NewRequestCounts(inMemory(t), kafka, slog.New(slog.DiscardHandler), m)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- counts.Run(ctx) }()
		away := errors.New("away")
		sent := int64(0)
		for _, state := range []struct {
			lossy bool
			err   error
		}{{}, {true, away}, {false, away}, {false, away}, {true, away}, {}, {false, away}} {
			kafka.set(state.lossy, state.err)
			for range 30 {
				counts.Add(from, time.Now(), "read")
				sent++
				time.Sleep(100 * time.Millisecond)
			}
		}
		kafka.set(false, nil)
		counts.Add(from, time.Now(), "read")
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := kafka.sum(from, "read"); got != sent+1 || testutil.ToFloat64(m.RequestCounts.WithLabelValues("sent")) != float64(sent+1) {
			t.Errorf("%d requests counted, want %d", got, sent+1)
		}
	})
}

// Each count has the tenant, the mode, the day of the arrival and the class. A stop while Kafka is away loses the counts, and says so.
func TestRequestCountsByDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kafka, from := newConsumer(t), liveCaller()
		m := app.NewMetrics(prometheus.NewRegistry())
		counts := app.NewRequestCounts(inMemory(t), producerFunc(func(list []kafkax.Message) error {
			for _, message := range list {
				var in eventsv1.RequestLogs
				if err := proto.Unmarshal(message.Value, &in); err != nil {
					t.Error(err)
				}
				for _, n := range in.GetCounts()[0].GetCounts() {
					if want := int64(map[int32]int{20453: 2, 20454: 1}[n.GetDay()]); n.GetRequests() != want || !n.GetLivemode() {
						t.Errorf("%v, want %d", n, want)
					}
				}
			}
			return kafka.Produce(t.Context(), list...)
		}), slog.New(slog.DiscardHandler), m)
		midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		counts.Add(from, midnight.Add(-time.Nanosecond), "write")
		counts.Add(from, midnight.Add(-time.Hour).In(time.FixedZone("east", 7200)), "write")
		counts.Add(from, midnight, "write")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := counts.Run(ctx); err != nil || kafka.sum(from, "write") != 3 {
			t.Errorf("%d, %v", kafka.sum(from, "write"), err)
		}
		kafka.set(true, errors.New("away"))
		counts.Add(from, midnight, "write")
		if err := counts.Run(ctx); err != nil || testutil.ToFloat64(m.RequestCounts.WithLabelValues("lost")) != 1 {
			t.Errorf("lost %v, %v", testutil.ToFloat64(m.RequestCounts.WithLabelValues("lost")), err)
		}
	})
}

type producerFunc func(list []kafkax.Message) error

func (f producerFunc) Produce(_ context.Context, list ...kafkax.Message) error { return f(list) }

// The numbers in memory are bounded, and so are messages.
func TestRequestCountsAreBounded(t *testing.T) {
	t.Parallel()
	kafka, first := newConsumer(t), liveCaller()
	m := app.NewMetrics(prometheus.NewRegistry())
	counts := app.NewRequestCounts(inMemory(t), kafka, slog.New(slog.DiscardHandler), m)
	counts.Add(first, time.Now(), "read")
	for range 100_000 {
		counts.Add(&caller.Caller{Tenant: ids.New[ids.TenantPrefix]()}, time.Now(), "read")
	}
	counts.Add(first, time.Now(), "read") // it has a number already
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := counts.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if full := testutil.ToFloat64(m.RequestCounts.WithLabelValues("full")); full != 1 || kafka.sum(first, "read") != 2 || len(kafka.sums) != 100_000 {
		t.Errorf("%v not counted, %d tenants", full, len(kafka.sums))
	}
	if kafka.largest == 0 || kafka.largest > 128<<10 {
		t.Errorf("a message of %d bytes", kafka.largest)
	}
}

// The counts of a process that ended while Kafka did not confirm them are sent by the next one. Those that arrived keep their ids, so they
// are added once, although they fill several messages of several keys.
func TestRequestCountsOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	kafka, path := newConsumer(t), filepath.Join(t.TempDir(), "counts")
	m := app.NewMetrics(prometheus.NewRegistry())
	log := &strings.Builder{}
	ended, end := context.WithCancel(t.Context())
	end() // Run sends once more and returns
	want := int64(0)
	for _, state := range []struct {
		lossy bool
		err   error
	}{{false, errors.New("away")}, {true, errors.New("away")}, {false, errors.New("away")}, {false, nil}} {
		file := counts(t, path)
		process := app.NewRequestCounts(file, kafka, slog.New(slog.NewTextHandler(log, nil)), m)
		for range 5000 {
			process.Add(&caller.Caller{Tenant: ids.New[ids.TenantPrefix]()}, time.Now(), "write")
			want++
		}
		kafka.set(state.lossy, state.err)
		if err := process.Run(ended); err != nil {
			t.Fatal(err)
		}
		if left := process.Waiting(); (left == 0) != (state.err == nil) {
			t.Errorf("%d wait after %v", left, state.err)
		}
		if err := process.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got := int64(0)
	for _, n := range kafka.sums {
		got += n
	}
	if sent := testutil.ToFloat64(m.RequestCounts.WithLabelValues("sent")); got != want || sent != float64(want) || kafka.largest > 200<<10 {
		t.Errorf("%d requests counted, %v sent, want %d; the largest message has %d bytes", got, sent, want, kafka.largest)
	}
	if lost := testutil.ToFloat64(m.RequestCounts.WithLabelValues("lost")); lost != 0 || strings.Count(log.String(), "kept for the next start") != 3 {
		t.Errorf("%v lost\n%s", lost, log)
	}
}
