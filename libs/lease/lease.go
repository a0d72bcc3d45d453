// Package lease contains the right of one process at a time to work on an operation that calls another service. It does no I/O, so
// that a domain may use it.
package lease

import "time"

// Lease is the right of one process to work on an operation for a time. It is stored in columns of the operation's row; a field
// without a column stays zero. Its times are real ones.
type Lease struct {
	Attempt int        // rises by 1 each time that the lease is taken; only the last attempt may end the operation
	Since   *time.Time // when the lease was taken first; nil: no operation is under way
	Until   *time.Time // until when a process holds it, and another one may take it afterwards; nil: no operation is under way
}

// UnderWay reports whether an operation has begun and has not ended.
func (l Lease) UnderWay() bool { return l.Until != nil }

// Held reports whether a process holds the lease.
func (l Lease) Held(real time.Time) bool { return l.Until != nil && real.Before(*l.Until) }

// Is reports whether the operation is under way and no other attempt has followed the given one.
func (l Lease) Is(attempt Lease) bool { return l.UnderWay() && l.Attempt == attempt.Attempt }

// Take is the lease of the next attempt, for a duration from now on.
func (l Lease) Take(real time.Time, length time.Duration) Lease {
	if l.Since == nil {
		l.Since = &real
	}
	l.Attempt++
	return l.Renew(real, length)
}

// Renew is the lease of the same attempt, for a duration from now on.
func (l Lease) Renew(real time.Time, length time.Duration) Lease {
	until := real.Add(length)
	l.Until = &until
	return l
}

// End is the lease without an operation under way. The number stays, so that no later attempt has it again.
func (l Lease) End() Lease { return Lease{Attempt: l.Attempt} }

// maxDoublings keeps durations of up to an hour from an overflow.
const maxDoublings = 20

// Doubled is a duration after a number of doublings, at most longest.
func Doubled(d time.Duration, times int, longest time.Duration) time.Duration {
	return min(d<<min(times, maxDoublings), longest)
}
