package domain

import "time"

// The limits of a delivery.
const (
	MaxAttempts = 20
	MaxAge      = 7 * 24 * time.Hour
	firstDelay  = time.Minute
	maxDelay    = 12 * time.Hour
)

// Delay returns the time to wait after the n-th failed attempt, n from 1: a minute, doubled each time, up to 12 h. jitter in [0, 1)
// varies it by up to a tenth.
func Delay(n int, jitter float64) time.Duration {
	d := maxDelay
	if n < 11 { // a minute × 2^10 is more than 12 h
		d = min(firstDelay<<(n-1), maxDelay)
	}
	return d + time.Duration((2*jitter-1)*float64(d)/10)
}

// Next returns when a delivery created at created is attempted again after its n-th attempt failed at now. It returns false if
// there are no more attempts. The receiver's Retry-After can make the delay longer, up to the longest delay of the schedule, but
// never shorter.
func Next(created, now time.Time, n int, retryAfter time.Duration, jitter float64) (time.Time, bool) {
	if n >= MaxAttempts {
		return time.Time{}, false
	}
	at := now.Add(max(Delay(n, jitter), min(retryAfter, maxDelay)))
	return at, at.Sub(created) <= MaxAge
}
