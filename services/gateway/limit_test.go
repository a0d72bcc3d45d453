package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/secret"
)

func TestTwoGatewaysOneLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gates := []*gateway{w.start(t), w.start(t)}
	key := w.identity.newKey()
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 1200 {
		wg.Go(func() {
			a, err := gates[i%2].try(t, "GET", oneCu, "", bearer(key))
			switch {
			case err != nil:
				t.Error(err)
			case a.StatusCode == http.StatusOK:
				passed.Add(1)
			case a.StatusCode == http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("%s %s", a.Status, a.body)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 600 || refused.Load() != 600 {
		t.Errorf("%d passed, %d refused", passed.Load(), refused.Load())
	}
}

// A gateway with the default time-out of Redis must count exactly, no matter how busy its own process is. This test runs alone,
// because it uses all processors. Other processes of the machine may delay Redis itself. A gateway cannot distinguish that from a
// dead Redis, so one of three attempts must be exact.
func TestABusyProcessDoesNotOpenTheLimit(t *testing.T) {
	w := newWorld(t)
	var seen []string
	for range 3 {
		refused, local := w.busy(t)
		if refused == 201 && local == 0 {
			return
		}
		seen = append(seen, fmt.Sprintf("%d refused, %v limited locally", refused, local))
	}
	t.Errorf("want 201 refused and none limited locally, got %s", strings.Join(seen, "; "))
}

// busy sends 301 requests of one credential to a gateway with a limit of 100 whose process has far more work than
// processors. It returns how many got 429 and how many Redis did not count.
func (w *world) busy(t *testing.T) (refused int, local float64) {
	t.Helper()
	g := w.start(t, func(c *Config) { c.RedisTimeout = 15 * time.Millisecond; c.RateLimit = 100 })
	key := w.identity.newKey()
	g.send(t, "GET", oneCu, "", bearer(key))
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 64 {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	responses := make([]*response, 300)
	var wg sync.WaitGroup
	for i := range responses {
		wg.Go(func() { responses[i], _ = g.raw("GET", oneCu, "", bearer(key)) })
	}
	wg.Wait()
	close(stop)
	busy.Wait()
	for _, a := range responses { // a request that passed the limit may have timed out at the service
		if a == nil {
			continue
		}
		g.checker.Check(t, a.Request, a.Response, []byte(a.body))
		if a.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	return refused, count(g.server.Pipeline.Metrics.Fallback)
}

func TestLimitOnAllBases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit = 3 })
	key := w.identity.newKey()
	host := func(r *http.Request) { r.Host = "tenant.example.com" }
	for _, left := range []string{"2", "1", "0"} {
		path := map[string]string{"2": oneCu, "1": strings.TrimPrefix(oneCu, "/api"), "0": oneCu}[left]
		a := g.send(t, "GET", path, "", bearer(key), host)
		if a.StatusCode != 200 || a.Header.Get("RateLimit-Remaining") != left {
			t.Errorf("%s: %d, remaining %q, want %s", path, a.StatusCode, a.Header.Get("RateLimit-Remaining"), left)
		}
	}
	a := g.send(t, "GET", oneCu, "", bearer(key))
	want(t, a, 429, "rate_limited")
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || after < 1 || after > 61 || a.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("Retry-After %q, remaining %q", a.Header.Get("Retry-After"), a.Header.Get("RateLimit-Remaining"))
	}
	if other := w.identity.newKey(); g.send(t, "GET", oneCu, "", bearer(other)).StatusCode != 200 {
		t.Error("another key is limited too")
	}
}

func TestRedisBecomesUnavailable(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refuses", "hangs"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cable, url := newCable(t)
			g := w.start(t, func(c *Config) { c.RedisURL, c.RedisTimeout, c.RateLimit = secret.New(url), 200*time.Millisecond, 20 })
			key := w.identity.newKey()
			for range 5 {
				g.send(t, "GET", oneCu, "", bearer(key))
			}
			eventually(t, "a response counted by Redis", func() bool {
				return g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())).StatusCode == 200 &&
					!strings.Contains(lastLine(g), `"limiter":"local"`)
			})
			cable.set(how == "refuses", how == "hangs")
			began := count(g.server.Pipeline.Metrics.Fallback)
			passed := 0
			for range 40 {
				a := g.send(t, "GET", oneCu, "", bearer(key))
				switch a.StatusCode {
				case 200:
					passed++
				case 429:
				default:
					t.Fatalf("%d with Redis down", a.StatusCode)
				}
				if a.Header.Get("RateLimit-Limit") != "20" {
					t.Fatal("no rate headers")
				}
			}
			if passed != 15 {
				t.Errorf("%d passed of the 15 that were left", passed)
			}
			if n := count(g.server.Pipeline.Metrics.Fallback) - began; n != 40 {
				t.Errorf("%v requests metered as limited locally, want 40", n)
			}
			if strings.Count(g.log.String(), "Redis unavailable") != 1 {
				t.Errorf("the outage is logged %d times", strings.Count(g.log.String(), "Redis unavailable"))
			}
			cable.set(false, false)
			eventually(t, "Redis counts again", func() bool {
				g.send(t, "GET", oneCu, "", bearer(w.identity.newKey()))
				return strings.Contains(g.log.String(), "Redis available again")
			})
		})
	}
}

func lastLine(g *gateway) string {
	text := strings.TrimSpace(g.log.String())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// The first request to a hung Redis waits for the time-out. The next ones do not wait.
func TestAHungRedisCostsOneTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cable, url := newCable(t)
	const limit = time.Second // a loaded machine's pauses are shorter
	g := w.start(t, func(c *Config) { c.RedisURL, c.RedisTimeout = secret.New(url), limit })
	key := w.identity.newKey()
	g.send(t, "GET", oneCu, "", bearer(key))
	cable.set(false, true)
	var slow int
	for range 30 {
		start := time.Now()
		g.send(t, "GET", oneCu, "", bearer(key))
		if time.Since(start) >= limit {
			slow++
		}
	}
	if slow > 3 {
		t.Errorf("%d of 30 requests waited for Redis", slow)
	}
}
