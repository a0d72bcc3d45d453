package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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
	"holdfast.dev/services/gateway/internal/domain"
)

// broker is a producer that counts entries by tenant. While hang is set, it does not respond.
type broker struct {
	t       *testing.T
	mu      sync.Mutex
	entries map[string]int
	keys    map[string]string // by tenant
	largest int
	writes  int
	hang    bool
	err     error
}

// Produce implements kafkax.Producer.
func (b *broker) Produce(ctx context.Context, list ...kafkax.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hang {
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		return ctx.Err()
	}
	b.writes++
	for _, m := range list {
		var in eventsv1.RequestLogs
		if err := proto.Unmarshal(m.Value, &in); err != nil || m.Topic != "requests" {
			b.t.Errorf("topic %s: %v", m.Topic, err)
		}
		b.largest = max(b.largest, len(m.Value))
		for _, e := range in.GetEntries() {
			b.entries[string(e.GetTenantUuid())]++
			if key := b.keys[string(e.GetTenantUuid())]; key != "" && key != m.Key {
				b.t.Errorf("a tenant has the keys %s and %s", key, m.Key)
			}
			b.keys[string(e.GetTenantUuid())] = m.Key
		}
	}
	return b.err
}

func (b *broker) set(hang bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hang, b.err = hang, err
}

type requestLog struct {
	*app.RequestLogs
	*broker
	metrics *app.Metrics
	stop    func()
}

// start runs a request log until stop is called.
func start(t *testing.T) *requestLog {
	t.Helper()
	b := &broker{t: t, entries: map[string]int{}, keys: map[string]string{}}
	m := app.NewMetrics(prometheus.NewRegistry())
	l := &requestLog{RequestLogs: app.NewRequestLogs(b, 0, slog.New(slog.DiscardHandler), m), broker: b, metrics: m}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	l.stop = func() { cancel(); <-done }
	return l
}

func (l *requestLog) counted(result string) int {
	return int(testutil.ToFloat64(l.metrics.RequestLogs.WithLabelValues(result)))
}

// add adds n entries of a caller.
func (l *requestLog) add(c *caller.Caller, n int) { l.addStatus(c, n, http.StatusCreated) }

func (l *requestLog) addStatus(c *caller.Caller, n, status int) {
	for range n {
		l.Add(&domain.RequestLog{
			ID: ids.New[ids.RequestPrefix]().String(), Caller: c, Status: status, Method: "POST", Route: "/bookings", Path: "/bookings",
			UserAgent: strings.Repeat("x", 200),
		})
	}
}

// key returns the key of a caller's tenant in broker.entries.
func key(c *caller.Caller) string {
	u := c.Tenant.UUID()
	return string(u[:])
}

func tenant() *caller.Caller {
	return &caller.Caller{Tenant: ids.New[ids.TenantPrefix](), Mode: caller.Live, Credential: "key_1", Kind: "api_key"}
}

// Entries of many requests are written together, and the last ones when the process stops.
func TestEntriesAreWrittenInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, c := start(t), tenant()
		for range 30 {
			l.add(c, 10)
			time.Sleep(100 * time.Millisecond)
		}
		if n := l.counted("sent"); n < 200 || l.writes > 3 {
			t.Errorf("%d entries in %d writes within 3 s", n, l.writes)
		}
		l.add(c, 1)
		l.stop()
		if l.counted("sent") != 301 || l.entries[key(c)] != 301 {
			t.Errorf("%d sent, %d received", l.counted("sent"), l.entries[key(c)])
		}
	})
}

// One tenant's flood does not displace the entries of others.
func TestATenantsFloodIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, loud, quiet := start(t), tenant(), tenant()
		test := *loud
		test.Mode = caller.Test
		for range 10 { // while Kafka responds
			l.add(loud, 500)
			time.Sleep(100 * time.Millisecond)
		}
		if n := l.counted("tenant"); n < 2900 || n > 4000 {
			t.Errorf("%d of 5000 within a second were dropped", n)
		}
		time.Sleep(time.Minute)
		clear(l.entries)
		l.set(true, nil) // the next write hangs
		l.add(tenant(), 1)
		time.Sleep(2 * time.Second)
		dropped := l.counted("tenant")
		l.add(loud, 5000)
		l.add(quiet, 10)
		l.add(&test, 10)
		l.set(false, nil)
		time.Sleep(time.Minute)
		if l.counted("tenant")-dropped != 4000 || l.entries[key(loud)] != 1010 || l.entries[key(quiet)] != 10 {
			t.Errorf("%d dropped, received %d and %d", l.counted("tenant"), l.entries[key(loud)], l.entries[key(quiet)])
		}
		l.add(loud, 5)
		l.stop()
		if l.entries[key(loud)] != 1015 {
			t.Errorf("after the flood: %d", l.entries[key(loud)])
		}
	})
}

// A tenant that sends far too many requests, or requests with a revoked key, has a few of them in its log each second, and all its other
// requests.
func TestAFloodOfRefusalsIsSampled(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusUnauthorized} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			checkRefusalsAreSampled(t, status)
		})
	}
}

func checkRefusalsAreSampled(t *testing.T, status int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, loud, quiet := start(t), tenant(), tenant()
		const seconds = 20
		time.Sleep(500 * time.Millisecond) // not when the log is written
		for range seconds {
			l.addStatus(loud, 500, status)
			l.add(loud, 30)
			l.addStatus(quiet, 10, status)
			time.Sleep(time.Second)
		}
		l.stop()
		if n := l.entries[key(loud)]; n != 40*seconds {
			t.Errorf("the log of the tenant has %d entries of %d", n, 530*seconds)
		}
		if n := l.entries[key(quiet)]; n != 10*seconds {
			t.Errorf("the log of the other tenant has %d entries of %d", n, 10*seconds)
		}
		if n := l.counted("sent") + l.counted("tenant"); n != 540*seconds {
			t.Errorf("%d are counted of %d", n, 540*seconds)
		}
	})
}

// While Kafka does not respond, a bounded number of bytes waits, and the rest is dropped at once. Then the log continues.
func TestEntriesAreDroppedWhileKafkaHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t)
		l.set(true, nil)
		added, before := 0, time.Now()
		for range 40 { // each tenant is below its own bound
			l.add(tenant(), 900)
			added += 900
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("requests waited %s", took)
		}
		full := l.counted("full")
		if waits := added - full; waits < 8000 || waits > 20000 || l.counted("tenant") != 0 {
			t.Errorf("%d wait, %d were dropped", waits, full)
		}
		time.Sleep(22 * time.Second) // the first write is given up
		l.set(false, nil)
		c := tenant()
		l.add(c, 3)
		time.Sleep(time.Minute)
		if failed := l.counted("failed"); l.entries[key(c)] != 3 || failed == 0 || failed+l.counted("sent")+full != added+3 {
			t.Errorf("received %d, failed %d, sent %d, full %d of %d", l.entries[key(c)], failed, l.counted("sent"), full, added+3)
		}
		if l.largest > 256<<10 {
			t.Errorf("a message has %d bytes", l.largest)
		}
		l.stop()
	})
}

// A process that stops waits two seconds for Kafka, and no longer.
func TestStopWhileKafkaHangs(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{false, true} {
		t.Run(fmt.Sprint("write started ", started), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := start(t)
				l.set(true, nil)
				l.add(tenant(), 1)
				if started {
					time.Sleep(3 * time.Second)
					l.add(tenant(), 1)
				}
				before := time.Now()
				l.stop()
				if took := time.Since(before); took > 2*time.Second {
					t.Errorf("it waited %s", took)
				}
				if n := 1; l.counted("failed") < n {
					t.Errorf("%d failed", l.counted("failed"))
				}
			})
		})
	}
}

// Refused entries are dropped, not repeated without end.
func TestRefusedEntriesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t)
		l.set(false, errors.New("not authorized"))
		l.add(tenant(), 7)
		time.Sleep(time.Minute)
		if l.counted("failed") != 7 || l.writes != 1 {
			t.Errorf("%d failed in %d writes", l.counted("failed"), l.writes)
		}
		l.stop()
	})
}
