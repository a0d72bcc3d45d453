package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/store"

	"holdfast.dev/libs/secret"
)

func (w *world) setState(t *testing.T, key, state string) {
	t.Helper()
	if err := w.redis.Set(t.Context(), w.identity.holder(key).StateKey(), state, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
}

// forget has the effect of FLUSHALL for one credential and its tenant.
func (w *world) forget(t *testing.T, key string) {
	t.Helper()
	id := "{" + w.identity.holder(key).Tenant + "}"
	keys, err := w.redis.Keys(t.Context(), "*"+id+"*").Result()
	if err == nil && len(keys) > 0 {
		err = w.redis.Del(t.Context(), keys...).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func revoke(p *internalapi.Principal) { p.Revoked = true }

func TestRevocationHoldsFromTheNextRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gates := []*gateway{w.start(t), w.start(t)}
	key := w.identity.newKey()
	for _, g := range gates {
		want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	}
	w.identity.change(key, revoke)
	w.setState(t, key, store.Revoked)
	for range 2 {
		for _, g := range gates {
			want(t, g.send(t, "GET", oneCu, "", bearer(key)), 401, "revoked_credential")
		}
	}
	if n := w.identity.lookupCount(); n != 2 {
		t.Errorf("%d look-ups", n)
	}
}

func TestANewVersionHoldsFromTheNextRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	w.identity.change(key, func(p *internalapi.Principal) { p.Version, p.Scopes = 2, []string{"read:units"} })
	w.setState(t, key, "2")
	a := g.send(t, "GET", oneCu, "", bearer(key))
	want(t, a, 403, "insufficient_scope")
	if a.Header.Get("X-Service-Scope") != "read:units" {
		t.Errorf("X-Service-Scope %q", a.Header.Get("X-Service-Scope"))
	}
	// A version that identity does not have yet causes one lookup, not one per request.
	w.setState(t, key, "9")
	before := w.identity.lookupCount()
	for range 3 {
		g.send(t, "GET", oneCu, "", bearer(key))
	}
	if n := w.identity.lookupCount() - before; n != 1 {
		t.Errorf("%d look-ups", n)
	}
}

// A flushed Redis has also lost the revocation. The principal is read again at the next request after a second, long before its 30
// s in the cache have passed.
func TestFlushedRedisIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	w.identity.change(key, revoke)
	w.forget(t, key)
	eventually(t, "the revocation is noticed", func() bool {
		return g.send(t, "GET", oneCu, "", bearer(key)).StatusCode == http.StatusUnauthorized
	})
}

func TestRevocationWithRedisAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cable, url := newCable(t)
	g := w.start(t, func(c *Config) { c.RedisURL = secret.New(url) })
	best := time.Hour
	for try := 0; try < 5 && best > 1500*time.Millisecond; try++ { // the machine may be busy
		key := w.identity.newKey()
		want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
		cable.set(true, false)
		w.identity.change(key, revoke)
		start := time.Now()
		eventually(t, "the revocation is noticed", func() bool {
			return g.send(t, "GET", oneCu, "", bearer(key)).StatusCode == http.StatusUnauthorized
		})
		best = min(best, time.Since(start))
	}
	if best > 1500*time.Millisecond {
		t.Errorf("after %s", best)
	}
}

func TestIdentityAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	known, fresh := w.identity.newKey(), w.identity.newKey()
	want(t, g.send(t, "GET", oneCu, "", bearer(known)), 200, "")
	w.identity.mu.Lock()
	w.identity.down = true
	w.identity.mu.Unlock()
	want(t, g.send(t, "GET", oneCu, "", bearer(known)), 200, "")
	a := g.send(t, "GET", oneCu, "", bearer(fresh))
	want(t, a, 503, "unavailable")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestConcurrentMissesShareOneLookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	w.identity.mu.Lock() // the lookup hangs until all requests wait for it
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if a, err := g.try(t, "GET", oneCu, "", bearer(key)); err != nil || a.StatusCode != 200 {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	w.identity.mu.Unlock()
	wg.Wait()
	if n := w.identity.lookupCount(); n > 3 {
		t.Errorf("%d look-ups", n)
	}
}

// A single time-out of Redis must not make the gateway look up every credential that is older than a second in identity again.
func TestOneTimeoutOfRedisCostsNoLookups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cable, url := newCable(t)
	g := w.start(t, func(c *Config) { c.RedisURL, c.RedisTimeout = secret.New(url), 50*time.Millisecond })
	var keys []string
	for range 20 {
		key := w.identity.newKey()
		keys = append(keys, key)
		want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	}
	time.Sleep(1100 * time.Millisecond) // they are older than a second now
	calls, local := w.identity.lookupCount(), count(g.server.Pipeline.Metrics.Fallback)
	cable.set(false, true)
	for _, key := range keys {
		if a, err := g.raw("GET", oneCu, "", bearer(key)); err != nil || a.StatusCode != 200 {
			t.Errorf("%v, %v", a, err)
		}
	}
	downFor := g.server.Pipeline.Redis.DownFor(store.Holder{Credential: "any"})
	cable.set(false, false)
	if count(g.server.Pipeline.Metrics.Fallback)-local != 20 || downFor == 0 {
		t.Fatal("Redis was there")
	}
	if n := w.identity.lookupCount() - calls; n != 0 && downFor < time.Second {
		t.Errorf("%d look-ups", n)
	}
}

func (f *fakeIdentity) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// While Redis and identity are both down, or Redis has lost its data, principals of the last 30 s (here 4 s) are still
// used.
func TestRedisAndIdentityDown(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"down", "forgetful"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cable, url := newCable(t)
			g := w.start(t, func(c *Config) { c.RedisURL, c.PrincipalCacheTTL, c.RateLimit = secret.New(url), 4*time.Second, 1<<40 })
			key := w.identity.newKey()
			start := time.Now()
			want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
			w.identity.setDown(true)
			if how == "down" {
				cable.set(true, false)
			} else {
				w.forget(t, key)
			}
			calls := w.identity.lookupCount()
			eventually(t, "identity is called", func() bool {
				a := g.send(t, "GET", oneCu, "", bearer(key))
				if a.StatusCode != 200 && time.Since(start) < 4*time.Second {
					t.Fatalf("%d after %s", a.StatusCode, time.Since(start))
				}
				return w.identity.lookupCount() > calls
			})
			eventually(t, "it is too old", func() bool {
				return g.send(t, "GET", oneCu, "", bearer(key)).StatusCode == http.StatusServiceUnavailable
			})
			if took := time.Since(start); took < 4*time.Second {
				t.Errorf("too old after %s", took)
			}
			w.identity.setDown(false)
			eventually(t, "identity responds", func() bool {
				return g.send(t, "GET", oneCu, "", bearer(key)).StatusCode == http.StatusOK
			})
		})
	}
}
