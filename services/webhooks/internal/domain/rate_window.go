package domain

import (
	"slices"
	"time"
)

// RateWindow counts the attempts to an endpoint that started within the last second. It is a sliding-window log.
type RateWindow struct {
	At      []time.Time // start times, oldest first
	Started []int32     // the number of attempts at each of them
}

// Allowed returns how many attempts can start now if the limit for any second is limit. If none can start, free is the earliest
// time at which one can.
func (w RateWindow) Allowed(now time.Time, limit int) (n int, free time.Time) {
	w, n = w.current(now), limit
	for _, started := range w.Started {
		n -= int(started)
	}
	free = now
	for i := 0; n <= 0 && i < len(w.At); i++ { // the oldest entries leave the window first
		free = w.At[i].Add(time.Second)
		n += int(w.Started[i])
	}
	if free.After(now) {
		return 0, free
	}
	return n, now
}

// current returns the window without entries that are more than a second old or more than a second in the future. The latter come
// from a process whose clock was wrong.
func (w RateWindow) current(now time.Time) RateWindow {
	from, to := 0, len(w.At)
	for from < to && now.Sub(w.At[from]) >= time.Second {
		from++
	}
	for from < to && w.At[to-1].Sub(now) >= time.Second {
		to--
	}
	return RateWindow{At: w.At[from:to], Started: w.Started[from:to]}
}

// resolution limits the number of entries. Starts within the same 10 ms share one entry, with the time of the latest.
const resolution = 10 * time.Millisecond

// Add returns the window after n more attempts started now, without entries that are more than a second old. The entries stay in
// order even if the clock of another process was ahead.
func (w RateWindow) Add(now time.Time, n int) RateWindow {
	w = w.current(now)
	next := RateWindow{At: slices.Clone(w.At), Started: slices.Clone(w.Started)}
	if n == 0 {
		return next
	}
	last := len(next.At) - 1
	if last < 0 || now.Truncate(resolution).After(next.At[last]) {
		next.At, next.Started = append(next.At, now), append(next.Started, int32(n))
		return next
	}
	if now.After(next.At[last]) {
		next.At[last] = now
	}
	next.Started[last] += int32(n)
	return next
}
