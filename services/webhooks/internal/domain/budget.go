package domain

import (
	"time"

	"holdfast.dev/libs/ids"
)

// Speed is how long an endpoint holds what it is given, as its attempts say.
type Speed int

// The speeds. An attempt that is on its way for SlowAfter already makes its endpoint slow, too.
const (
	Fast    Speed = iota
	Unknown       // it has not answered yet
	Slow          // an attempt took SlowAfter or more within the last SlowFor
)

// The bounds of speeds.
const (
	SlowAfter      = time.Second
	SlowFor        = time.Minute
	UnknownAtATime = 5 // an endpoint that has not answered yet has so many on their way at most
)

// SpeedAt is the speed of an endpoint that is slow until a time; nil until it has answered.
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

// SlowUntil is until when an endpoint is slow after an attempt that ended now.
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

// What may be held of a budget at most.
const (
	tenantShare  = 8 // one tenant: an eighth
	slowShare    = 2 // all slow endpoints: a half
	unknownShare = 4 // all that have not answered yet: a quarter, so a quarter is left to those that answer fast
)

// Budget is what one process has to give to attempts, places or bytes, and how much of it is held. No tenant holds
// more than its share, or more than what is left beside: so something is left for one more, however many tenants
// hold all they can. Who holds nothing may take more than a share, so that nothing is too large for ever.
type Budget struct {
	limit, tenantLimit  int
	held, slow, unknown int
	tenants             map[ids.Tenant]int
}

// NewBudget is a budget of which nothing is held. A tenant's share is never below least.
func NewBudget(limit, least int) *Budget {
	return &Budget{limit: limit, tenantLimit: max(limit/tenantShare, least), tenants: map[ids.Tenant]int{}}
}

// Free is what is not held.
func (b *Budget) Free() int { return b.limit - b.held }

// Hold takes n without asking.
func (b *Budget) Hold(tenant ids.Tenant, speed Speed, n int) {
	b.held += n
	b.tenants[tenant] += n
	switch speed {
	case Slow:
		b.slow += n
	case Unknown:
		b.unknown += n
	case Fast:
	}
}

// Take takes n where the bounds allow it.
func (b *Budget) Take(tenant ids.Tenant, speed Speed, n int) bool {
	fits := within(b.held, n, b.limit) && within(b.tenants[tenant], n, min(b.tenantLimit, b.Free()))
	switch speed {
	case Slow:
		fits = fits && within(b.slow, n, b.limit/slowShare)
	case Unknown:
		fits = fits && within(b.unknown, n, min(b.limit/unknownShare, b.limit-b.limit/unknownShare-b.slow))
	case Fast:
	}
	if fits {
		b.Hold(tenant, speed, n)
	}
	return fits
}

func within(held, n, limit int) bool { return held == 0 || held+n <= limit }
