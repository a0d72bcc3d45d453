package main

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
)

// While a client at the same address sends 50 invented keys a second with correct checksums, a request with a valid key that this
// gateway has not seen gets a response within 2 s. A request with a key that was valid recently gets one immediately.
func TestForgedKeysBlockNoClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.PrincipalCacheTTL = 50 * time.Millisecond })
	known := w.identity.newKey()
	want(t, g.send(t, "GET", oneCu, "", bearer(known)), 200, "")
	var forgers sync.WaitGroup
	var unknown atomic.Int64
	forged := func() {
		if a, err := g.try(t, "GET", oneCu, "", bearer(apikey.New(caller.Live))); err == nil && a.StatusCode == 401 {
			unknown.Add(1)
		}
	}
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for i := range 400 {
		<-every.C
		forgers.Go(forged)
		if i%10 != 0 {
			continue
		}
		best := time.Hour
		for try := 0; try < 3 && best > 2*time.Second; try++ { // the machine may be busy
			start := time.Now()
			want(t, g.send(t, "GET", oneCu, "", bearer(known)), 200, "")
			want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
			best = min(best, time.Since(start))
		}
		if best > 2*time.Second {
			t.Errorf("after %d forged keys a good one took %s", i, best)
		}
	}
	forgers.Wait()
	if unknown.Load() != 400 {
		t.Errorf("%d forged keys were looked up", unknown.Load())
	}
}

// Over the limit, every unknown key gets 429. Identity receives no more lookups than the limit, and keys that were valid recently
// still pass.
func TestForgedKeysOverTheBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.PrincipalCacheTTL, c.UnknownPerSecond = 50*time.Millisecond, 5 })
	known := w.identity.newKey()
	want(t, g.send(t, "GET", oneCu, "", bearer(known)), 200, "")
	began := time.Now()
	var refused, unknown atomic.Int64
	var forgers sync.WaitGroup
	for range 100 {
		forgers.Go(func() {
			a, err := g.try(t, "GET", oneCu, "", bearer(apikey.New(caller.Live)))
			switch {
			case err != nil:
			case a.StatusCode == 429 && a.code() == "rate_limited" && a.Header.Get("Retry-After") == "1":
				refused.Add(1)
			case a.StatusCode == 401:
				unknown.Add(1)
			}
		})
	}
	for range 10 {
		time.Sleep(50 * time.Millisecond)
		want(t, g.send(t, "GET", oneCu, "", bearer(known)), 200, "")
	}
	forgers.Wait()
	most := 5 + int64(5*time.Since(began)/time.Second) + 1
	if refused.Load()+unknown.Load() != 100 || unknown.Load() > most || unknown.Load() < 5 {
		t.Errorf("%d refused, %d looked up, which may be %d", refused.Load(), unknown.Load(), most)
	}
	if n := count(g.server.Pipeline.Metrics.Principals.WithLabelValues("refused")); int64(n) != refused.Load() {
		t.Errorf("%v are metered as refused, not %d", n, refused.Load())
	}
}
