package domain

import (
	"time"

	"holdfast.dev/libs/ids"
)

// Speed classifies an endpoint by the duration of its attempts.
type Speed int

// The speeds. An endpoint also counts as slow while one of its attempts has been in flight for SlowAfter.
const (
	Fast    Speed = iota
	Unknown       // no attempt received a response yet
	Slow          // an attempt took SlowAfter or more within the last SlowFor
)

// The limits that define speeds.
const (
	SlowAfter          = time.Second
	SlowFor            = time.Minute
	UnknownMaxInFlight = 5 // maximum attempts in flight to an endpoint that has not responded yet
)

// SpeedAt returns the speed of an endpoint that is slow until slowUntil, which is nil until it has responded.
func SpeedAt(slowUntil *time.Time, now time.Time) Speed {
	switch {
	case slowUntil == nil:
		return Unknown
	case now.Before(*slowUntil):
		return Slow
	default:
		return Fast
	}
}

// SlowUntil returns the time until which an endpoint is slow after an attempt that just completed.
func SlowUntil(before *time.Time, now time.Time, took time.Duration) *time.Time {
	switch {
	case took >= SlowAfter:
		return new(now.Add(SlowFor))
	case before == nil:
		return &now
	default:
		return before
	}
}

// The shares of a budget, as denominators of a fraction.
const (
	tenantShare  = 8 // one tenant can use an eighth
	slowShare    = 2 // all slow endpoints together can use a half
	unknownShare = 4 // all endpoints of unknown speed together can use a quarter, so that fast endpoints always have a quarter
)

// Budget counts how much of a resource one process uses for attempts: concurrency, or bytes of bodies. A tenant can use at most its
// share, and at most as much as remains free afterwards, so that another tenant always finds some capacity. A tenant that uses
// nothing can exceed its share once, so that no body is too large to be sent.
type Budget struct {
	limit, tenantLimit  int
	used, slow, unknown int
	tenants             map[ids.Tenant]int
}

// NewBudget returns an unused budget. A tenant's share is never less than leastShare.
func NewBudget(limit, leastShare int) *Budget {
	return &Budget{limit: limit, tenantLimit: max(limit/tenantShare, leastShare), tenants: map[ids.Tenant]int{}}
}

// Free returns the unused amount.
func (b *Budget) Free() int { return b.limit - b.used }

// Acquire adds n to the used amount without any check.
func (b *Budget) Acquire(tenant ids.Tenant, speed Speed, n int) {
	b.used += n
	b.tenants[tenant] += n
	switch speed {
	case Slow:
		b.slow += n
	case Unknown:
		b.unknown += n
	case Fast:
	}
}

// TryAcquire acquires n and returns true, or returns false if a limit does not allow it.
func (b *Budget) TryAcquire(tenant ids.Tenant, speed Speed, n int) bool {
	fits := within(b.used, n, b.limit) && within(b.tenants[tenant], n, min(b.tenantLimit, b.Free()))
	switch speed {
	case Slow:
		fits = fits && within(b.slow, n, b.limit/slowShare)
	case Unknown:
		fits = fits && within(b.unknown, n, min(b.limit/unknownShare, b.limit-b.limit/unknownShare-b.slow))
	case Fast:
	}
	if fits {
		b.Acquire(tenant, speed, n)
	}
	return fits
}

// within reports whether n more fit into limit. Any n fits if nothing is used.
func within(used, n, limit int) bool { return used == 0 || used+n <= limit }
