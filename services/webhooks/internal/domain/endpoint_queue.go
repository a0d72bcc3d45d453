package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/ids"
)

// EndpointKey identifies an endpoint among those of all tenants and both modes.
type EndpointKey struct {
	Tenant   ids.Tenant
	Livemode bool
	Endpoint EndpointID
}

// Compare orders keys in the order in which the database locks rows.
func (k EndpointKey) Compare(o EndpointKey) int {
	if c := slices.Compare(bytes(k.Tenant.UUID()), bytes(o.Tenant.UUID())); c != 0 {
		return c
	}
	if k.Livemode != o.Livemode {
		if o.Livemode {
			return -1
		}
		return 1
	}
	return slices.Compare(bytes(k.Endpoint.UUID()), bytes(o.Endpoint.UUID()))
}

// bytes returns an id as a slice, which slices.Compare needs.
func bytes(u [16]byte) []byte { return u[:] }

// EndpointQueue is the queue of deliveries to one endpoint, with its limits and the state that they depend on.
type EndpointQueue struct {
	Key          EndpointKey
	Enabled      bool
	MaxInFlight  int
	MaxPerSecond int
	InFlight     int // attempts in flight of all processes
	RateWindow   RateWindow
	Breaker      Breaker
	Speed        Speed
}

// Allowance specifies the attempts that the limits of an endpoint allow in one pass of the dispatcher.
type Allowance struct {
	Max              int  // maximum number of attempts
	FirstAttempts    bool // first attempts can start; the breaker does not defer them
	ConcurrencyBound bool // MaxInFlight, not MaxPerSecond, determines Max
}

// Allowance returns the attempts that the endpoint's own limits allow now. An endpoint whose breaker is probing has one attempt in
// flight at a time, and an endpoint that has not responded yet has at most UnknownMaxInFlight.
func (q EndpointQueue) Allowance(now time.Time) Allowance {
	free := q.MaxInFlight
	if q.Speed == Unknown {
		free = min(free, UnknownMaxInFlight)
	}
	if q.Breaker.Probing() {
		free = 1
	}
	free -= q.InFlight
	allowed, _ := q.RateWindow.Allowed(now, q.MaxPerSecond)
	return Allowance{Max: max(0, min(free, allowed)), FirstAttempts: !q.Breaker.Open(now), ConcurrencyBound: free <= allowed}
}

// atLimitWait is how long a queue at its concurrency limit waits if no attempt completes.
const atLimitWait = time.Second

// AfterStart returns the queue's rate window after n attempts of allowance a started, the earliest time of the queue's next pass,
// and whether the queue is at its concurrency limit. If it is, the next attempt that completes makes the queue ready before that
// time.
func (q EndpointQueue) AfterStart(a Allowance, now time.Time, n int) (w RateWindow, notBefore time.Time, atLimit bool) {
	w = q.RateWindow.Add(now, n)
	_, free := w.Allowed(now, q.MaxPerSecond)
	if a.ConcurrencyBound && n == a.Max && free.Equal(now) {
		return w, now.Add(atLimitWait), true
	}
	return w, free, false
}
