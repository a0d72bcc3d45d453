package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const closed, open = 0, 2 // of the metric

func (g *gateway) breaker(service string) float64 {
	return count(g.server.Pipeline.Metrics.Breaker.WithLabelValues(service))
}

// sendConcurrently sends `clients` GETs at the same time, each on its own connection, and counts the statuses of the responses.
func (g *gateway) sendConcurrently(t *testing.T, key string, clients int) map[int]int {
	t.Helper()
	many := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer many.CloseIdleConnections()
	got := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			req, _ := http.NewRequest("GET", g.url+oneCu, nil)
			req.Header.Set("Authorization", "Bearer "+key)
			res, err := many.Do(req)
			status := 0
			if err == nil {
				status = res.StatusCode
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			} else {
				t.Error(err)
			}
			mu.Lock()
			got[status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return got
}

// A response over 16 MiB is an error of its own request, and the breaker does not count it.
func TestATooLargeResponseIsNoFailureOfItsService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	declared := true
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("limit") == "" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			if declared {
				w.Header().Set("Content-Length", "16777217")
			}
			for range 17 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
					break
				}
			}
			return true
		}
	})
	key := w.identity.newKey()
	for i := range 30 {
		declared = i > 2
		want(t, g.send(t, "GET", customers+"?limit=100", "", bearer(key)), 500, "internal_error")
	}
	want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
	if g.breaker("customers") != closed || strings.Contains(g.log.String(), "circuit breaker") {
		t.Errorf("the breaker is %v", g.breaker("customers"))
	}
	if !strings.Contains(g.log.String(), "exceeds the given limit") {
		t.Error("the cause is not in the log")
	}
}

// Broken connections open only the breaker of their service, until a call receives a response again. The metric shows it.
func TestBreakerIsMetered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	if g.breaker("customers") != closed || g.breaker(lookups) != closed {
		t.Fatal("a breaker is open from the start")
	}
	w.service.set(func(f *fakeService) {
		f.handle = func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	})
	key := w.identity.newKey()
	for range 20 {
		want(t, g.send(t, "POST", customers, ada, bearer(key)), 503, "unavailable")
	}
	if g.breaker("customers") != open || g.breaker("bookings") != closed {
		t.Errorf("customers %v, bookings %v", g.breaker("customers"), g.breaker("bookings"))
	}
	w.service.set(func(f *fakeService) { f.handle = nil })
	eventually(t, "the breaker closes", func() bool {
		g.send(t, "GET", oneCu, "", bearer(key))
		return g.breaker("customers") == closed
	})
}

// Late responses to one tenant never block a service for the others. Late responses to several tenants do, because then the service
// hangs.
func TestTimeoutsOfATenantAffectNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.UpstreamTimeout = time.Second }) // a loaded machine connects within it
	w.service.set(func(f *fakeService) {
		f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			<-r.Context().Done()
			return true
		}
	})
	late := func(n int, key func() string) {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if a, err := g.try(t, "POST", customers, ada, bearer(key())); err != nil || a.StatusCode != 504 && a.StatusCode != 503 {
					t.Errorf("%v %v", a, err)
				}
			})
		}
		all.Wait()
	}
	busy := w.identity.newKey()
	for range 3 {
		late(20, func() string { return busy })
		want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
	}
	if g.breaker("customers") != closed {
		t.Error("one tenant's late responses opened the breaker")
	}
	late(60, func() string { return w.identity.newKey() })
	if g.breaker("customers") != open {
		t.Error("the breaker of a service that hangs for all is not open")
	}
}

// Late responses to one address without a credential, such as those for a calendar, do not block a service for others either.
func TestTimeoutsWithoutACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.UpstreamTimeout = time.Second }) // a loaded machine connects within it
	w.service.set(func(f *fakeService) {
		f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, ".ics") {
				return false
			}
			<-r.Context().Done()
			return true
		}
	})
	for range 3 {
		var all sync.WaitGroup
		for range w.cfg.UpstreamTenantCalls {
			all.Go(func() {
				if a, err := g.try(t, "GET", "/api/v1/calendar/"+strings.Repeat("a", 43)+".ics", ""); err != nil || a.StatusCode != 504 {
					t.Errorf("%v %v", a, err)
				}
			})
		}
		all.Wait()
	}
	if g.breaker("bookings") != closed {
		t.Error("late calendars of one address opened the breaker")
	}
}

// sendAsTenants is sendConcurrently for several tenants at the same time.
func (w *world) sendAsTenants(t *testing.T, g *gateway, tenants, clients int) map[int]int {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for range tenants {
		all.Go(func() {
			own := g.sendConcurrently(t, w.identity.newKey(), clients)
			mu.Lock()
			defer mu.Unlock()
			for status, n := range own {
				got[status] += n
			}
		})
	}
	all.Wait()
	return got
}

// A thousand clients of twenty tenants share 256 connections. A call without a connection waits for one until its own deadline.
func TestAThousandClientsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit, c.UpstreamTimeout = 1<<40, 20*time.Second })
	w.service.set(func(f *fakeService) { f.delay = 600 * time.Millisecond })
	if got := w.sendAsTenants(t, g, 20, 50); got[200] != 1000 {
		t.Errorf("statuses %v", got)
	}
}

// A call that waited for a connection until its deadline returns 504. This does not count as a failure of the service.
func TestWaitingForAConnectionIsNoFailureOfItsService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit, c.UpstreamTimeout, c.UpstreamMaxConns = 1<<40, 2*time.Second, 25 })
	w.service.set(func(f *fakeService) { f.delay = 1200 * time.Millisecond })
	got := w.sendAsTenants(t, g, 5, 15)
	if got[200] != 25 || got[504] != 50 || g.breaker("customers") != closed {
		t.Errorf("statuses %v, the breaker is %v", got, g.breaker("customers"))
	}
}

// A tenant whose calls all hang uses some of the connections to a service. Its own further calls wait, and those of others do not.
func TestATenantsSlowCallsLeaveConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) {
		c.RateLimit, c.UpstreamTimeout, c.UpstreamMaxConns, c.UpstreamTenantCalls = 1<<40, 5*time.Second, 20, 5
	})
	var hanging atomic.Int64
	w.service.set(func(f *fakeService) {
		f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			hanging.Add(1)
			<-r.Context().Done()
			return true
		}
	})
	slow := w.identity.newKey()
	done := make(chan map[int]int)
	go func() {
		got := map[int]int{}
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 60 {
			all.Go(func() {
				a, err := g.try(t, "POST", customers, ada, bearer(slow))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				got[a.StatusCode]++
			})
		}
		all.Wait()
		done <- got
	}()
	eventually(t, "calls hang", func() bool { return hanging.Load() == 5 })
	for range 50 {
		want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
	}
	select {
	case got := <-done:
		t.Fatalf("the slow calls ended first: %v", got)
	default:
	}
	if n := hanging.Load(); n != 5 {
		t.Errorf("%d of the slow calls run", n)
	}
	if got := <-done; got[504] != 60 {
		t.Errorf("statuses %v", got)
	}
}
