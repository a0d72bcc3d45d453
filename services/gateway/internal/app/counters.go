package app

import (
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// Counters are sliding windows of this process only, one per name. They follow the windows in Redis, so that counting continues
// from these values, not from zero, when Redis does not respond. They also reject the requests of a flood without a round trip.
type Counters struct {
	windows cache[string, *counter]
	skew    atomic.Int64 // Redis's clock minus this process's, in microseconds
}

type counter struct {
	mu     sync.Mutex
	w      domain.Window
	since  time.Time // start of the current checkPeriod
	checks int       // requests for which Redis was asked since then, although the window was full
	lookup time.Time // last one of a stale credential of the tenant whose request Redis rejected
}

// Redis is asked about a full window maxChecks times in a checkPeriod, and identity about one stale credential of the tenant, so that a
// program that ignores 429 needs little of either. Until the period ends, the process does not learn that the credential was revoked, or
// that its limit was raised. A full window stays full until its time has passed, whatever other processes do.
const (
	maxChecks   = 5
	checkPeriod = 100 * time.Millisecond
)

// NewCounters stores the `size` most used windows.
func NewCounters(size int) *Counters {
	return &Counters{windows: newCache[string, *counter](size, 2*time.Minute, sinceUse)}
}

func (c *Counters) of(name string) *counter {
	if w, ok := c.windows.get(name); ok {
		return w
	}
	return c.windows.add(name, &counter{})
}

func (c *Counters) now() int64 { return time.Now().UnixMicro() + c.skew.Load() }

// Adopt replaces the window of name with the shared one. now is the time of the shared window by Redis's clock. An older window,
// from a late response, changes nothing.
func (c *Counters) Adopt(name string, w domain.Window, now int64) {
	c.skew.Store(now - time.Now().UnixMicro())
	c.of(name).adopt(w)
}

// AdoptAll is Adopt for the windows that limit a credential: its own and those of its tenant.
func (c *Counters) AdoptAll(h store.Holder, l domain.Limits, w domain.Windows, now int64) {
	c.Adopt(h.Credential, w.Credential, now)
	c.of(allOf(h)).adopt(w.Tenant)
	if l.HasApps() {
		c.of(appsOf(h)).adopt(w.Apps)
	}
}

// allOf names the window of all credentials of a tenant and mode.
func allOf(h store.Holder) string { return h.Tenant + "/" + h.Mode }

// appsOf names the window of all OAuth grants of a tenant and mode.
func appsOf(h store.Holder) string { return h.Tenant + "/" + h.Mode + "/apps" }

func (one *counter) adopt(w domain.Window) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if w.Start > one.w.Start || w.Start == one.w.Start && w.Cur > one.w.Cur {
		one.w = w
	}
}

// Reject reports whether a request of name is rejected without asking Redis, and the rate.
func (c *Counters) Reject(name string, l domain.Limit) (domain.Rate, bool) {
	one, ok := c.windows.get(name)
	if !ok {
		return domain.Rate{}, false
	}
	rate := l.Rate(one.read(), c.now())
	return rate, rate.RetryAfter > 0 && !one.check()
}

// RejectAny is Reject for a credential and its tenant. The count of the credential can lack requests that other processes have received.
func (c *Counters) RejectAny(h store.Holder, l domain.Limits) (domain.Rates, bool) {
	own, ok := c.windows.get(h.Credential)
	all, known := c.windows.get(allOf(h))
	if !ok || !known {
		return domain.Rates{}, false
	}
	w := domain.Windows{Credential: own.read(), Tenant: all.read()}
	apps := own // without a grant, its rate is zero and it is not checked
	if l.HasApps() {
		if apps, ok = c.windows.get(appsOf(h)); !ok {
			return domain.Rates{}, false
		}
		w.Apps = apps.read()
	}
	rates := l.Rates(w, c.now())
	reject := func(r domain.Rate, one *counter) bool { return r.RetryAfter > 0 && !one.check() }
	return rates, reject(rates.Tenant, all) || reject(rates.Apps, apps) || reject(rates.Credential, own)
}

// Full reports whether a window of a credential or of its tenant is full.
func (c *Counters) Full(h store.Holder, l domain.Limits) bool {
	now := c.now()
	full := func(name string, l domain.Limit) bool {
		one, ok := c.windows.get(name)
		return ok && l.Rate(one.read(), now).RetryAfter > 0
	}
	return full(allOf(h), l.Tenant) || l.HasApps() && full(appsOf(h), l.Apps) || full(h.Credential, l.Credential)
}

func (one *counter) read() domain.Window {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.w
}

// check reports whether Redis is asked about a request although the window is full.
func (one *counter) check() bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	if now := time.Now(); now.Sub(one.since) >= checkPeriod {
		one.since, one.checks = now, 0
	}
	one.checks++
	return one.checks <= maxChecks
}

// CanLookUp reports whether a stale credential of the tenant is looked up although Redis rejects its request: once in a checkPeriod, in
// case Redis has lost a change.
func (c *Counters) CanLookUp(h store.Holder) bool {
	one, now := c.of(allOf(h)), time.Now()
	one.mu.Lock()
	defer one.mu.Unlock()
	if now.Sub(one.lookup) < checkPeriod {
		return false
	}
	one.lookup = now
	return true
}

// Take counts one request, unless the limit is reached.
func (c *Counters) Take(name string, l domain.Limit) (domain.Rate, bool) {
	now := c.now()
	one := c.of(name)
	one.mu.Lock()
	defer one.mu.Unlock()
	var ok bool
	one.w, ok = l.Take(one.w, now)
	return l.Rate(one.w, now), ok
}

// TakeAll counts one request of a credential and its tenant, unless a limit is reached.
func (c *Counters) TakeAll(h store.Holder, l domain.Limits) (domain.Rates, bool) {
	now := c.now()
	own, all := c.of(h.Credential), c.of(allOf(h))
	all.mu.Lock() // the tenant's, then that of its apps, then a credential's, so that no requests wait for each other
	defer all.mu.Unlock()
	apps := &counter{}
	if l.HasApps() {
		apps = c.of(appsOf(h))
	}
	apps.mu.Lock()
	defer apps.mu.Unlock()
	own.mu.Lock()
	defer own.mu.Unlock()
	w, ok := l.Take(domain.Windows{Credential: own.w, Tenant: all.w, Apps: apps.w}, now)
	own.w, all.w, apps.w = w.Credential, w.Tenant, w.Apps
	return l.Rates(w, now), ok
}
