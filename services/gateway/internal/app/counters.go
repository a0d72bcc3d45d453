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
	mu      sync.Mutex
	w       domain.Window
	since   int64 // start of the current refusalPeriod, by Redis's clock
	refused int   // requests that Redis rejected since then
}

// Redis is asked about a full window maxRefusals times in a refusalPeriod, so that a program that ignores 429 does not use the time of
// Redis. Until the period ends, the process does not learn that the credential was revoked, or that its limit was raised. A full window
// stays full until its time has passed, whatever other processes do.
const (
	maxRefusals   = 5
	refusalPeriod = 100_000 // microseconds
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

// AdoptBoth is Adopt for the windows of a credential and its tenant.
func (c *Counters) AdoptBoth(h store.Holder, w domain.Windows, now int64) {
	c.Adopt(h.Credential, w.Credential, now)
	c.of(allOf(h)).adopt(w.Tenant)
}

// allOf names the window of all credentials of a tenant and mode.
func allOf(h store.Holder) string { return h.Tenant + "/" + h.Mode }

func (one *counter) adopt(w domain.Window) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if w.Start > one.w.Start || w.Start == one.w.Start && w.Cur > one.w.Cur {
		one.w = w
	}
}

// Refused notes that Redis rejected a request of name.
func (c *Counters) Refused(name string) { c.of(name).refuse(c.now()) }

// RefusedBoth is Refused for each of the two windows that rejected a request.
func (c *Counters) RefusedBoth(h store.Holder, r domain.Rates) {
	now := c.now()
	if r.Credential.RetryAfter > 0 {
		c.of(h.Credential).refuse(now)
	}
	if r.Tenant.RetryAfter > 0 {
		c.of(allOf(h)).refuse(now)
	}
}

// Full reports whether a request of name is rejected without asking Redis, and the rate.
func (c *Counters) Full(name string, l domain.Limit) (domain.Rate, bool) {
	now := c.now()
	one, ok := c.windows.get(name)
	if !ok {
		return domain.Rate{}, false
	}
	w, known := one.read(now)
	rate := l.Rate(w, now)
	return rate, known && rate.RetryAfter > 0
}

// FullBoth is Full for a credential and its tenant. The count of the credential can lack requests that other processes have received.
func (c *Counters) FullBoth(h store.Holder, l domain.Limits) (domain.Rates, bool) {
	own, credential := c.Full(h.Credential, l.Credential)
	all, tenant := c.Full(allOf(h), l.Tenant)
	return domain.Rates{Credential: own, Tenant: all}, own.Limit > 0 && all.Limit > 0 && (credential || tenant)
}

func (one *counter) refuse(now int64) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if now >= one.since+refusalPeriod {
		one.since, one.refused = now, 0
	}
	one.refused++
}

// read returns the window, and whether Redis has been asked about it often enough.
func (one *counter) read(now int64) (domain.Window, bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.w, one.refused >= maxRefusals && now < one.since+refusalPeriod
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

// TakeBoth counts one request of a credential and its tenant, unless a limit is reached.
func (c *Counters) TakeBoth(h store.Holder, l domain.Limits) (domain.Rates, bool) {
	now := c.now()
	own, all := c.of(h.Credential), c.of(allOf(h))
	all.mu.Lock() // always before a credential's, so that two requests never wait for each other
	defer all.mu.Unlock()
	own.mu.Lock()
	defer own.mu.Unlock()
	w, ok := l.Take(domain.Windows{Credential: own.w, Tenant: all.w}, now)
	own.w, all.w = w.Credential, w.Tenant
	return l.Rates(w, now), ok
}
