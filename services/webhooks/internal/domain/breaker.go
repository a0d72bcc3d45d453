package domain

import "time"

// The limits of the breaker.
const (
	breakerFailures = 5
	breakerWindow   = 10 * time.Second
	firstDeferral   = 30 * time.Second
	maxDeferral     = 5 * time.Minute
)

// Breaker is the circuit breaker of an endpoint. It opens after five failures of different deliveries within ten seconds, for
// example while a receiver is deployed, and then defers first attempts by 30 s. After that, one attempt at a time probes the
// endpoint. If it fails, first attempts are deferred for twice as long, up to 5 min. If it succeeds, the breaker closes. A deferral
// does not count as a failed attempt.
type Breaker struct {
	FailedAt      []time.Time // the times of the latest failures, oldest first
	Failed        []DeliveryID
	DeferredUntil *time.Time
	Deferrals     int // the number of deferrals since the last success
}

// Fail returns the breaker after a failed attempt of a delivery. An open breaker does not change: such an attempt was in flight
// when it opened, or is not a first attempt.
func (b Breaker) Fail(at time.Time, id DeliveryID) Breaker {
	if b.Open(at) {
		return b
	}
	next := Breaker{DeferredUntil: b.DeferredUntil, Deferrals: b.Deferrals}
	for i, t := range b.FailedAt {
		if at.Sub(t) < breakerWindow && b.Failed[i] != id {
			next.FailedAt, next.Failed = append(next.FailedAt, t), append(next.Failed, b.Failed[i])
		}
	}
	next.FailedAt, next.Failed = append(next.FailedAt, at), append(next.Failed, id)
	if next.Deferrals == 0 && len(next.Failed) < breakerFailures {
		return next
	}
	until := at.Add(min(firstDeferral<<min(next.Deferrals, 8), maxDeferral))
	return Breaker{DeferredUntil: &until, Deferrals: next.Deferrals + 1}
}

// Open reports whether the breaker defers first attempts.
func (b Breaker) Open(now time.Time) bool {
	return b.DeferredUntil != nil && now.Before(*b.DeferredUntil)
}

// Probing reports whether one attempt at a time tests if the endpoint works again.
func (b Breaker) Probing() bool { return b.Deferrals > 0 }

// Closed reports whether no attempt has failed since the last success.
func (b Breaker) Closed() bool { return b.Deferrals == 0 && len(b.Failed) == 0 }
