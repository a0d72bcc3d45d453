package domain

import (
	"slices"
	"time"
)

// Pace counts what was begun for an endpoint within the last second, at each time.
type Pace struct {
	At    []time.Time
	Begun []int32
}

// Allowed is how many may be begun now, of at most limit within any second; when it is none, free says from when
// there may be one.
func (p Pace) Allowed(now time.Time, limit int) (n int, free time.Time) {
	p, n = p.since(now), limit
	for _, begun := range p.Begun {
		n -= int(begun)
	}
	free = now
	for i := 0; n <= 0 && i < len(p.At); i++ { // the oldest leave first
		free = p.At[i].Add(time.Second)
		n += int(p.Begun[i])
	}
	if free.After(now) {
		return 0, free
	}
	return n, now
}

// since is p without what is over a second old, or a second ahead: what a wrong clock has left.
func (p Pace) since(now time.Time) Pace {
	from, to := 0, len(p.At)
	for from < to && now.Sub(p.At[from]) >= time.Second {
		from++
	}
	for from < to && p.At[to-1].Sub(now) >= time.Second {
		to--
	}
	return Pace{At: p.At[from:to], Begun: p.Begun[from:to]}
}

// grain bounds the list: the times within the same one count as one, the latest.
const grain = 10 * time.Millisecond

// Begin is the pace after n more were begun now; what is over a second old is forgotten. Another process's clock
// may have been ahead: the list stays in order.
func (p Pace) Begin(now time.Time, n int) Pace {
	p = p.since(now)
	next := Pace{At: slices.Clone(p.At), Begun: slices.Clone(p.Begun)}
	if n == 0 {
		return next
	}
	last := len(next.At) - 1
	if last < 0 || now.Truncate(grain).After(next.At[last]) {
		next.At, next.Begun = append(next.At, now), append(next.Begun, int32(n)) //nolint:gosec // the contract bounds it
		return next
	}
	if now.After(next.At[last]) {
		next.At[last] = now
	}
	next.Begun[last] += int32(n) //nolint:gosec // as above
	return next
}
