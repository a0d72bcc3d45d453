package main

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/secret"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/store"
)

// keysOf returns keys of one tenant.
func (f *fakeIdentity) keysOf(n int, edits ...func(*internalapi.Principal)) []string {
	keys := []string{f.newKey()}
	for _, edit := range edits {
		f.change(keys[0], edit)
	}
	for len(keys) < n {
		keys = append(keys, f.sibling(keys[0], edits...))
	}
	return keys
}

// sendAll sends requests of the keys in turn, through the gateways in turn, and returns how many passed and how many got 429.
func sendAll(t *testing.T, gates []*gateway, keys []string, requests int) (passed, refused int64) {
	t.Helper()
	var ok, limited atomic.Int64
	work := make(chan int)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range work {
				a, err := gates[i%len(gates)].try(t, "GET", oneCu, "", bearer(keys[i%len(keys)]))
				switch {
				case err != nil:
					t.Error(err)
				case a.StatusCode == http.StatusOK:
					ok.Add(1)
				case a.StatusCode == http.StatusTooManyRequests:
					limited.Add(1)
				default:
					t.Errorf("%s %s", a.Status, a.body)
				}
			}
		})
	}
	for i := range requests {
		work <- i
	}
	close(work)
	wg.Wait()
	return ok.Load(), limited.Load()
}

// TestATenantHasOneLimit sends more than the limit of a tenant with many keys through three gateways: exactly the limit passes. The other
// mode and another tenant are not limited.
func TestATenantHasOneLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gates []*gateway
	for range 3 {
		gates = append(gates, w.start(t, func(c *Config) { c.TenantRateLimit = 100 }))
	}
	keys := w.identity.keysOf(25)
	if passed, refused := sendAll(t, gates, keys, 400); passed != 100 || refused != 300 {
		t.Errorf("%d passed, %d refused", passed, refused)
	}
	live := w.identity.sibling(keys[0], func(p *internalapi.Principal) { p.Mode = "live" })
	if a := gates[0].send(t, "GET", oneCu, "", bearer(live)); a.StatusCode != 200 {
		t.Errorf("the other mode: %s", a.Status)
	}
	if a := gates[0].send(t, "GET", oneCu, "", bearer(w.identity.newKey())); a.StatusCode != 200 {
		t.Errorf("another tenant: %s", a.Status)
	}
}

// The headers name the limit that rejected the request. The others describe the credential, which the rejection does not count.
func TestHeadersOfATenantsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit, c.TenantRateLimit = 10, 3 })
	keys := w.identity.keysOf(2)
	for i := range 3 {
		a := g.send(t, "GET", oneCu, "", bearer(keys[i%2]))
		if left := strconv.Itoa(9 - i/2); a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("RateLimit"), `"default";r=`+left+";t=") || a.Header.Get("RateLimit-Policy") != `"default";q=10;w=60` {
			t.Errorf("%s %v", a.Status, a.Header)
		}
	}
	for range 2 {
		a := g.send(t, "GET", oneCu, "", bearer(keys[0]))
		want(t, a, 429, "rate_limited")
		seconds, ok := strings.CutPrefix(a.Header.Get("RateLimit"), `"tenant";r=0;t=`)
		if n, err := strconv.Atoi(seconds); !ok || err != nil || n < 1 || n > 60 {
			t.Errorf("RateLimit %q", a.Header.Get("RateLimit"))
		}
		if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 1 || after > 61 {
			t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
		}
		if a.Header.Get("RateLimit-Limit") != "10" || a.Header.Get("RateLimit-Remaining") != "8" || a.Header.Get("RateLimit-Policy") != `"default";q=10;w=60, "tenant";q=3;w=60` {
			t.Errorf("headers %v", a.Header)
		}
		if !strings.Contains(a.body, "All credentials of the tenant") || !strings.Contains(lastLine(g), `"limit":"tenant"`) {
			t.Errorf("body %s, log %s", a.body, lastLine(g))
		}
	}
	if n := count(g.server.Pipeline.Metrics.Tenants); n != 2 {
		t.Errorf("%v refusals metered", n)
	}
	// A refusal of the credential's limit is not one of the tenant.
	own := w.start(t, func(c *Config) { c.RateLimit, c.TenantRateLimit = 1, 3 })
	alone := w.identity.newKey()
	own.send(t, "GET", oneCu, "", bearer(alone))
	a := own.send(t, "GET", oneCu, "", bearer(alone))
	if a.StatusCode != 429 || !strings.HasPrefix(a.Header.Get("RateLimit"), `"default";r=0;t=`) || a.Header.Get("RateLimit-Policy") != `"default";q=1;w=60` || count(own.server.Pipeline.Metrics.Tenants) != 0 {
		t.Errorf("%s %v", a.Status, a.Header)
	}
}

// grantsOf returns access tokens of n grants of the tenant of a key.
func (f *fakeIdentity) grantsOf(key string, n int) (tokens []string) {
	p := f.change(key, nil)
	for range n {
		token := f.newToken(time.Now().Add(time.Hour))
		f.change(token, func(o *internalapi.Principal) { o.TenantID, o.Limits = p.TenantID, p.Limits })
		tokens = append(tokens, token)
	}
	return tokens
}

// TestAppsTakeHalfOfATenant sends more than a tenant's limit with many grants through three gateways: half of the limit passes, and the
// tenant's own keys get the other half. The keys alone can use the whole limit.
func TestAppsTakeHalfOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gates []*gateway
	for range 3 {
		gates = append(gates, w.start(t, func(c *Config) { c.TenantRateLimit = 100 }))
	}
	keys := w.identity.keysOf(5)
	tokens := w.identity.grantsOf(keys[0], 20)
	if passed, refused := sendAll(t, gates, tokens, 300); passed != 50 || refused != 250 {
		t.Errorf("apps: %d passed, %d refused", passed, refused)
	}
	if passed, refused := sendAll(t, gates, keys, 100); passed != 50 || refused != 50 {
		t.Errorf("keys: %d passed, %d refused", passed, refused)
	}
	other := w.identity.keysOf(5)
	if passed, _ := sendAll(t, gates, other, 60); passed != 60 {
		t.Errorf("the keys of another tenant: %d passed", passed)
	}
	if passed, refused := sendAll(t, gates, w.identity.grantsOf(other[0], 5), 100); passed != 40 || refused != 60 {
		t.Errorf("apps after the keys: %d passed, %d refused", passed, refused)
	}
}

// The headers of a rejected app name the limit of apps, and the other ones describe the grant. Without Redis, the gateway continues the
// window from its last state.
func TestHeadersOfTheLimitOfApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cable, url := newCable(t)
	g := w.start(t, func(c *Config) { c.RedisURL, c.RateLimit, c.TenantRateLimit = secret.New(url), 10, 8 })
	key := w.identity.newKey()
	tokens := w.identity.grantsOf(key, 2)
	for i := range 4 {
		a := g.send(t, "GET", oneCu, "", bearer(tokens[i%2]))
		if a.StatusCode != 200 || a.Header.Get("RateLimit-Policy") != `"default";q=10;w=60` || a.Header.Get("RateLimit-Remaining") != strconv.Itoa(9-i/2) {
			t.Errorf("request %d: %s %v", i+1, a.Status, a.Header)
		}
	}
	for _, down := range []bool{false, true} {
		cable.set(down, false)
		a := g.send(t, "GET", oneCu, "", bearer(tokens[0]))
		want(t, a, 429, "rate_limited")
		seconds, ok := strings.CutPrefix(a.Header.Get("RateLimit"), `"apps";r=0;t=`)
		if n, err := strconv.Atoi(seconds); !ok || err != nil || n < 1 || n > 60 {
			t.Errorf("RateLimit %q", a.Header.Get("RateLimit"))
		}
		if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 1 || after > 61 {
			t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
		}
		if a.Header.Get("RateLimit-Limit") != "10" || a.Header.Get("RateLimit-Policy") != `"default";q=10;w=60, "apps";q=4;w=60` ||
			!strings.Contains(a.body, "The apps of the tenant") || !strings.Contains(lastLine(g), `"limit":"apps"`) {
			t.Errorf("%v, body %s, log %s", a.Header, a.body, lastLine(g))
		}
		if down {
			want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
		}
	}
	metrics := g.server.Pipeline.Metrics
	if count(metrics.Apps) != 2 || count(metrics.Tenants) != 0 || count(metrics.Limited) != count(metrics.Apps) {
		t.Errorf("metered %v of apps, %v of tenants, %v in all", count(metrics.Apps), count(metrics.Tenants), count(metrics.Limited))
	}
}

// mostChecked returns about how many requests of a full window a gateway asks Redis since a time: five in 0.1 s, and those on their way
// when the window became full.
func mostChecked(begin time.Time) int {
	return 5*(1+int(time.Since(begin)/(100*time.Millisecond))) + 32
}

// TestAFloodOfOneTenant sends far more than the limit of a tenant. Most of its requests are rejected without asking Redis, with the headers
// that Redis's own rejections have, and a higher limit applies a moment later. Redis is asked about requests of the other mode and of other
// tenants.
func TestAFloodOfOneTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	limit := func(n int) func(*internalapi.Principal) {
		return func(p *internalapi.Principal) { p.Limits = &internalapi.TenantLimits{RequestsPerMinute: &n} }
	}
	g := w.start(t)
	metrics := g.server.Pipeline.Metrics
	keys := w.identity.keysOf(3, limit(20))
	begin := time.Now()
	passed, refused := sendAll(t, []*gateway{g}, keys, 1020)
	unchecked := int(count(metrics.Unchecked))
	if passed != 20 || refused != 1000 || unchecked < 1000-mostChecked(begin) || count(metrics.Limited) != 1000 || count(metrics.Tenants) != 1000 {
		t.Errorf("%d passed, %d were refused, %v of them without Redis", passed, refused, unchecked)
	}
	var all sync.WaitGroup
	for range 30 { // Redis rejects some of them
		all.Go(func() {
			a := g.send(t, "GET", oneCu, "", bearer(keys[0]))
			want(t, a, 429, "rate_limited")
			after, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil || after < 1 || after > 121 || !strings.HasPrefix(a.Header.Get("RateLimit"), `"tenant";r=0;t=`) {
				t.Errorf("%v", a.Header)
			}
		})
	}
	all.Wait()
	unchecked = int(count(metrics.Unchecked))
	live := w.identity.sibling(keys[0], func(p *internalapi.Principal) { p.Mode = "live" })
	for _, other := range []string{live, w.identity.newKey()} {
		if a := g.send(t, "GET", oneCu, "", bearer(other)); a.StatusCode != 200 || int(count(metrics.Unchecked)) != unchecked {
			t.Errorf("another mode or tenant: %s", a.Status)
		}
	}
	for _, key := range keys {
		w.identity.change(key, func(p *internalapi.Principal) { limit(1000)(p); p.Version++ })
		w.setState(t, key, "2")
	}
	eventually(t, "the higher limit", func() bool {
		return g.send(t, "GET", oneCu, "", bearer(keys[0])).StatusCode == 200
	})
	w.setState(t, keys[1], store.Revoked)
	want(t, g.send(t, "GET", oneCu, "", bearer(keys[1])), 401, "revoked_credential")
}

// While the requests of a tenant are rejected, its credentials are not looked up when they become too old. A revoked one is found
// nevertheless, although Redis does not know of it, and so is a higher limit.
func TestOldPrincipalsOfAFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	limit := func(n int) func(*internalapi.Principal) {
		return func(p *internalapi.Principal) { p.Limits = &internalapi.TenantLimits{RequestsPerMinute: &n} }
	}
	g := w.start(t, func(c *Config) { c.PrincipalCacheTTL = 10 * time.Millisecond })
	keys := w.identity.keysOf(30, limit(20))
	begin := time.Now()
	passed, refused := sendAll(t, []*gateway{g}, keys, 1020)
	if lookups := w.identity.lookupCount(); passed != 20 || refused != 1000 || lookups > len(keys)+20+mostChecked(begin) {
		t.Errorf("%d passed, %d were refused, with %d lookups", passed, refused, lookups)
	}
	time.Sleep(1100 * time.Millisecond) // all principals become too old, also for another marker of Redis
	begin, before := time.Now(), w.identity.lookupCount()
	if passed, _ := sendAll(t, []*gateway{g}, keys, 2000); passed != 0 {
		t.Errorf("%d passed although the window is full", passed)
	}
	if lookups, most := w.identity.lookupCount()-before, 2+int(time.Since(begin)/(100*time.Millisecond)); lookups > most {
		t.Errorf("%d lookups of principals that are too old, want at most one in 0.1 s: %d", lookups, most)
	}
	w.identity.change(keys[0], func(p *internalapi.Principal) { p.Revoked = true })
	send := func(key string) int { return g.send(t, "GET", oneCu, "", bearer(key)).StatusCode }
	eventually(t, "the revoked key is rejected", func() bool { return send(keys[0]) == 401 })
	for range 20 {
		time.Sleep(2 * time.Millisecond) // its principal becomes too old
		if status := send(keys[0]); status != 401 {
			t.Errorf("later: %d", status)
		}
	}
	if status := send(keys[1]); status != 429 {
		t.Errorf("another key: %d", status)
	}
	w.identity.change(keys[1], limit(1000))
	eventually(t, "the higher limit", func() bool { return send(keys[1]) == 200 })
}

// A tenant's own limits replace the defaults, and a change applies to the next request of each gateway.
func TestATenantsOwnLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gates := []*gateway{w.start(t), w.start(t)}
	limits := func(all, one int) func(*internalapi.Principal) {
		return func(p *internalapi.Principal) {
			p.Limits = &internalapi.TenantLimits{RequestsPerMinute: &all, CredentialRequestsPerMinute: &one}
		}
	}
	keys := w.identity.keysOf(2, limits(4, 3))
	for i, status := range []int{200, 200, 200, 429} { // the limit of the credential
		if a := gates[i%2].send(t, "GET", oneCu, "", bearer(keys[0])); a.StatusCode != status || a.Header.Get("RateLimit-Limit") != "3" {
			t.Errorf("request %d: %s, limit %s", i+1, a.Status, a.Header.Get("RateLimit-Limit"))
		}
	}
	for i, status := range []int{200, 429} { // the limit of the tenant
		want429 := map[int]string{200: "", 429: "rate_limited"}[status]
		want(t, gates[i].send(t, "GET", oneCu, "", bearer(keys[1])), status, want429)
	}
	for _, key := range keys {
		w.identity.change(key, func(p *internalapi.Principal) { limits(100, 50)(p); p.Version++ })
		w.setState(t, key, "2")
	}
	for _, g := range gates {
		for _, key := range keys {
			if a := g.send(t, "GET", oneCu, "", bearer(key)); a.StatusCode != 200 || a.Header.Get("RateLimit-Limit") != "50" {
				t.Errorf("after the limits were raised: %s, limit %s", a.Status, a.Header.Get("RateLimit-Limit"))
			}
		}
	}
	for _, key := range keys {
		w.identity.change(key, func(p *internalapi.Principal) { limits(5, 5)(p); p.Version++ })
		w.setState(t, key, "3")
	}
	for _, g := range gates {
		g.send(t, "GET", oneCu, "", bearer(keys[0])) // was counted before the gateway learned of the new limit
		want(t, g.send(t, "GET", oneCu, "", bearer(keys[0])), 429, "rate_limited")
	}
}

// Services receive the caps that the platform has set for the tenant.
func TestCapsReachTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	caps := map[string]int{"units": 7}
	key := w.identity.keysOf(1, func(p *internalapi.Principal) { p.Limits = &internalapi.TenantLimits{Caps: &caps} })[0]
	want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	w.service.mu.Lock()
	defer w.service.mu.Unlock()
	if w.service.caller.Caps["units"] != 7 || len(w.service.caller.Caps) != 1 {
		t.Errorf("caps %v", w.service.caller.Caps)
	}
}

// While Redis is down, each gateway continues both windows from their last state.
func TestATenantsLimitWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cable, url := newCable(t)
	g := w.start(t, func(c *Config) { c.RedisURL, c.TenantRateLimit = secret.New(url), 10 })
	keys := w.identity.keysOf(5)
	if passed, _ := sendAll(t, []*gateway{g}, keys, 4); passed != 4 {
		t.Fatalf("%d passed", passed)
	}
	cable.set(true, false)
	if passed, refused := sendAll(t, []*gateway{g}, keys, 20); passed != 6 || refused != 14 {
		t.Errorf("%d passed and %d refused of the 6 that were left", passed, refused)
	}
	a := g.send(t, "GET", oneCu, "", bearer(keys[0]))
	if a.StatusCode != 429 || !strings.HasPrefix(a.Header.Get("RateLimit"), `"tenant";r=0;t=`) || a.Header.Get("RateLimit-Limit") != "600" {
		t.Errorf("%s %v", a.Status, a.Header)
	}
	if a := g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())); a.StatusCode != 200 {
		t.Errorf("another tenant: %s", a.Status)
	}
}

func TestTheDefaultOfATenantsLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ one, all, want int64 }{{600, 0, 3000}, {5, 0, 3000}, {1000, 0, 5000}, {1000, 7, 7}} {
		if got := (&Config{RateLimit: c.one, TenantRateLimit: c.all}).limits(); got.Tenant.Max != c.want || got.Credential.Max != c.one || got.Tenant.Per != got.Credential.Per {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	w := newWorld(t)
	w.cfg.TenantRateLimit = -1
	if err := w.cfg.check(); err == nil || !strings.Contains(err.Error(), "TENANT_RATE_LIMIT_PER_MINUTE") {
		t.Errorf("a negative limit: %v", err)
	}
}
