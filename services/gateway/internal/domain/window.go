package domain

// Window is a sliding-window counter that starts at the credential's first request. Times are microseconds since 1970; Start 0
// means that nothing was counted yet. The Redis script in store uses the same algorithm.
type Window struct {
	Start int64 // first instant of the current window
	Cur   int64 // requests counted in the current window
	Prev  int64 // requests counted in the window before the current one
}

// Limit allows Max requests in any period of Per microseconds.
type Limit struct {
	Max int64
	Per int64
}

// Roll returns w at the time now. If the current window has ended, a later one replaces it.
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

// used returns the count at now: the current window, and the part of the previous one that still overlaps. w must be rolled to now.
func (l Limit) used(w Window, now int64) int64 {
	return w.Prev*l.left(w, now)/l.Per + w.Cur
}

// left returns the remaining time of the window. If the clock has gone backwards, it is at most one whole window.
func (l Limit) left(w Window, now int64) int64 {
	return min(w.Start+l.Per-now, l.Per)
}

// Take counts a request at now, unless the limit is reached. A rejected request does not change w.
func (l Limit) Take(w Window, now int64) (Window, bool) {
	rolled := l.Roll(w, now)
	if l.used(rolled, now) >= l.Max {
		return w, false
	}
	rolled.Cur++
	return rolled, true
}

// Rate contains the values of the response's headers.
type Rate struct {
	Limit      int64
	Remaining  int64
	Reset      int64 // whole seconds until the window ends
	RetryAfter int64 // whole seconds until a request is allowed; 0 if one is allowed now
}

// Rate returns the rate of the window at now.
func (l Limit) Rate(w Window, now int64) Rate {
	w = l.Roll(w, now)
	return Rate{
		Limit:      l.Max,
		Remaining:  max(0, l.Max-l.used(w, now)),
		Reset:      seconds(l.left(w, now)),
		RetryAfter: seconds(l.wait(w, now)),
	}
}

// wait returns the time from now until Take counts a request again. w must be rolled to now.
func (l Limit) wait(w Window, now int64) int64 {
	if l.used(w, now) < l.Max {
		return 0
	}
	if w.Cur < l.Max {
		return w.Start + l.Per - l.overlap(w.Prev, l.Max-w.Cur) - now
	}
	// The current window is full: it must end, and then its overlap must shrink.
	return w.Start + 2*l.Per - l.overlap(w.Cur, l.Max) - now
}

// overlap returns the longest remaining part of a window at which prev requests of the previous one count as fewer than room.
func (l Limit) overlap(prev, room int64) int64 {
	return (l.Per*room+prev-1)/prev - 1
}

// Limits are the limits of a request: of its credential, and of all credentials of its tenant in one mode.
type Limits struct{ Credential, Tenant Limit }

// Windows contains the windows of the credential and of all credentials of its tenant in one mode.
type Windows struct{ Credential, Tenant Window }

// Take counts a request in both windows, unless a limit is reached. A rejected request changes neither window.
func (l Limits) Take(w Windows, now int64) (Windows, bool) {
	credential, passed := l.Credential.Take(w.Credential, now)
	tenant, all := l.Tenant.Take(w.Tenant, now)
	if !passed || !all {
		return w, false
	}
	return Windows{credential, tenant}, true
}

// Rates returns the rates of both windows at now.
func (l Limits) Rates(w Windows, now int64) Rates {
	return Rates{Credential: l.Credential.Rate(w.Credential, now), Tenant: l.Tenant.Rate(w.Tenant, now)}
}

// Rates contains the values of the response's headers for both limits.
type Rates struct{ Credential, Tenant Rate }

// RetryAfter returns the whole seconds until both limits allow a request.
func (r Rates) RetryAfter() int64 { return max(r.Credential.RetryAfter, r.Tenant.RetryAfter) }

// OwnLimits are the requests per minute that the platform has set for a tenant. 0 is the default.
type OwnLimits struct{ Credential, Tenant int64 }

// For returns the limits for a tenant with its own ones.
func (l Limits) For(own OwnLimits) Limits {
	if own.Credential > 0 {
		l.Credential.Max = own.Credential
	}
	if own.Tenant > 0 {
		l.Tenant.Max = own.Tenant
	}
	return l
}

func seconds(micros int64) int64 { return (micros + 999_999) / 1_000_000 }
