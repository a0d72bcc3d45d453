package domain

// Window is a sliding-window counter that starts at the credential's first request. Times are microseconds
// since 1970; Start 0 means that nothing was counted yet. The Redis script in store does the same sums.
type Window struct {
	Start int64 // first instant of the current window
	Cur   int64 // requests counted in the current window
	Prev  int64 // requests counted in the window before
}

// Limit allows Max requests in any Per microseconds.
type Limit struct {
	Max int64
	Per int64
}

// Roll returns w as it stands at now: a later window takes over where the current one has ended.
func (l Limit) Roll(w Window, now int64) Window {
	switch {
	case w.Start == 0 || now >= w.Start+2*l.Per:
		return Window{Start: now}
	case now >= w.Start+l.Per:
		return Window{Start: w.Start + l.Per, Prev: w.Cur}
	default:
		return w
	}
}

// used is what counts at now: the current window and the part of the one before that still overlaps. w has
// been rolled to now.
func (l Limit) used(w Window, now int64) int64 {
	return w.Prev*l.left(w, now)/l.Per + w.Cur
}

// left is how long the window still lasts; a clock that ran back never makes it longer than a whole one.
func (l Limit) left(w Window, now int64) int64 {
	return min(w.Start+l.Per-now, l.Per)
}

// Take counts a request at now, unless the limit is used up: a refused request leaves w as it was.
func (l Limit) Take(w Window, now int64) (Window, bool) {
	rolled := l.Roll(w, now)
	if l.used(rolled, now) >= l.Max {
		return w, false
	}
	rolled.Cur++
	return rolled, true
}

// Rate is what the answer's headers say.
type Rate struct {
	Limit      int64
	Remaining  int64
	Reset      int64 // whole seconds until the window ends
	RetryAfter int64 // whole seconds after which a request passes; 0 when one passes now
}

// Rate reads the window at now.
func (l Limit) Rate(w Window, now int64) Rate {
	w = l.Roll(w, now)
	return Rate{
		Limit:      l.Max,
		Remaining:  max(0, l.Max-l.used(w, now)),
		Reset:      seconds(l.left(w, now)),
		RetryAfter: seconds(l.wait(w, now)),
	}
}

// wait is the time from now to the first instant at which Take would count. w has been rolled to now.
func (l Limit) wait(w Window, now int64) int64 {
	if l.used(w, now) < l.Max {
		return 0
	}
	if w.Cur < l.Max {
		return w.Start + l.Per - l.overlap(w.Prev, l.Max-w.Cur) - now
	}
	// The current window is full: it must end, and then fade.
	return w.Start + 2*l.Per - l.overlap(w.Cur, l.Max) - now
}

// overlap is the longest rest of the window at which prev requests of the one before count as fewer than room.
func (l Limit) overlap(prev, room int64) int64 {
	return (l.Per*room+prev-1)/prev - 1
}

func seconds(micros int64) int64 { return (micros + 999_999) / 1_000_000 }
