package domain

import "time"

// The bounds of a delivery.
const (
	MaxAttempts = 20
	MaxAge      = 7 * 24 * time.Hour
	firstDelay  = time.Minute
	lastDelay   = 12 * time.Hour
)

// Delay is the wait after the n-th failed attempt, n from 1: a minute, doubled each time, at most 12 h, give or
// take a tenth as jitter in [0, 1) says.
func Delay(n int, jitter float64) time.Duration {
	d := lastDelay
	if n < 11 { // a minute × 2^10 is more than 12 h
		d = min(firstDelay<<(n-1), lastDelay)
	}
	return d + time.Duration((2*jitter-1)*float64(d)/10)
}

// Next is when a delivery made at made is attempted again after its n-th attempt failed at now; false when it
// has failed for good. The receiver's Retry-After puts it off, up to the schedule's longest delay, and never
// brings it forward.
func Next(made, now time.Time, n int, retryAfter time.Duration, jitter float64) (time.Time, bool) {
	if n >= MaxAttempts {
		return time.Time{}, false
	}
	at := now.Add(max(Delay(n, jitter), min(retryAfter, lastDelay)))
	return at, at.Sub(made) <= MaxAge
}
