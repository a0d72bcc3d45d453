// Package lease gives one process at a time the right to run an operation that calls another service. It does no I/O, so domain
// packages can use it.
package lease

import "time"

// Lease is the right of one process to run an operation for a limited time. It is stored in columns of the operation's row; a field
// without a column stays zero. Its times are real times, not those of a test clock.
type Lease struct {
	Attempt int        // increases by 1 each time the lease is taken; only the last attempt can end the operation
	Since   *time.Time // when the lease was first taken; nil: no operation is running
	Until   *time.Time // when the lease expires, so that another process can take it; nil: no operation is running
}

// UnderWay reports whether an operation began and has not ended.
func (l Lease) UnderWay() bool { return l.Until != nil }

// Held reports whether a process holds the lease.
func (l Lease) Held(real time.Time) bool { return l.Until != nil && real.Before(*l.Until) }

// Is reports whether the operation is running and the given attempt is the last one.
func (l Lease) Is(attempt Lease) bool { return l.UnderWay() && l.Attempt == attempt.Attempt }

// Holds reports whether the process with the given lease is the last one that has taken or renewed it.
func (l Lease) Holds(of Lease) bool {
	return l.Is(of) && of.Until != nil && l.Until.Equal(of.Until.Truncate(time.Microsecond)) // the precision of the columns
}

// Take returns the lease of the next attempt, which expires after a duration.
func (l Lease) Take(real time.Time, length time.Duration) Lease {
	if l.Since == nil {
		l.Since = &real
	}
	l.Attempt++
	return l.Renew(real, length)
}

// Renew returns the lease of the same attempt, which expires after a duration.
func (l Lease) Renew(real time.Time, length time.Duration) Lease {
	until := real.Add(length)
	l.Until = &until
	return l
}

// End returns the lease without a running operation. The attempt number does not change, so that later attempts have higher ones.
func (l Lease) End() Lease { return Lease{Attempt: l.Attempt} }

// maxDoublings prevents an overflow for durations of up to an hour.
const maxDoublings = 20

// Doubled returns a duration after a number of doublings, at most longest.
func Doubled(d time.Duration, times int, longest time.Duration) time.Duration {
	return min(d<<min(times, maxDoublings), longest)
}
