package domain

import "time"

// The breaker's bounds.
const (
	breakerFailures = 5
	breakerWindow   = 10 * time.Second
	firstDeferral   = 30 * time.Second
	lastDeferral    = 5 * time.Minute
)

// Breaker defers the first attempts of an endpoint that fails: five failures of different deliveries within ten
// seconds, an endpoint that is being redeployed, put them off by 30 s. Then one attempt probes: its failure
// defers them for twice as long, at most 5 min, its success ends it. Deferring is no failure of a delivery.
type Breaker struct {
	FailedAt      []time.Time // the latest failures, oldest first
	Failed        []DeliveryID
	DeferredUntil *time.Time
	Deferrals     int // since the last success
}

// Fail is the breaker after an attempt of a delivery failed. While it is open nothing changes: that was one on its
// way, or no first attempt.
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
	until := at.Add(min(firstDeferral<<min(next.Deferrals, 8), lastDeferral))
	return Breaker{DeferredUntil: &until, Deferrals: next.Deferrals + 1}
}

// Open reports whether first attempts wait.
func (b Breaker) Open(now time.Time) bool {
	return b.DeferredUntil != nil && now.Before(*b.DeferredUntil)
}

// Probing reports whether one attempt at a time is to show that the endpoint is back.
func (b Breaker) Probing() bool { return b.Deferrals > 0 }

// Closed reports whether nothing has failed since the last success.
func (b Breaker) Closed() bool { return b.Deferrals == 0 && len(b.Failed) == 0 }
