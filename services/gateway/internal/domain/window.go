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

// Limits are the limits of a request: of its credential, of all credentials of its tenant in one mode, and of the OAuth grants among them.
type Limits struct {
	Credential, Tenant Limit
	Apps               Limit // zero for a request without a grant
}

// Windows contains the windows of the credential, of all credentials of its tenant in one mode, and of the OAuth grants among them.
type Windows struct{ Credential, Tenant, Apps Window }

// Take counts a request in all windows that apply, unless a limit is reached. A rejected request changes no window.
func (l Limits) Take(w Windows, now int64) (Windows, bool) {
	credential, passed := l.Credential.Take(w.Credential, now)
	tenant, all := l.Tenant.Take(w.Tenant, now)
	apps, some := w.Apps, true
	if l.HasApps() {
		apps, some = l.Apps.Take(w.Apps, now)
	}
	if !passed || !all || !some {
		return w, false
	}
	return Windows{credential, tenant, apps}, true
}

// Uncounted returns limits that every request exceeds, so that it is counted in no window.
func (l Limits) Uncounted() Limits {
	return Limits{Credential: Limit{Per: l.Credential.Per}, Tenant: Limit{Per: l.Tenant.Per}}
}

// HasApps reports whether the limit of OAuth grants applies to the request.
func (l Limits) HasApps() bool { return l.Apps.Max > 0 }

// Rates returns the rates of the windows at now.
func (l Limits) Rates(w Windows, now int64) Rates {
	r := Rates{Credential: l.Credential.Rate(w.Credential, now), Tenant: l.Tenant.Rate(w.Tenant, now)}
	if l.HasApps() {
		r.Apps = l.Apps.Rate(w.Apps, now)
	}
	return r
}

// Rates contains the values of the response's headers for each limit. Apps is zero for a request without a grant.
type Rates struct{ Credential, Tenant, Apps Rate }

// RetryAfter returns the whole seconds until all limits allow a request.
func (r Rates) RetryAfter() int64 {
	return max(r.Credential.RetryAfter, r.Tenant.RetryAfter, r.Apps.RetryAfter)
}

// The names of the limits in RateLimit and RateLimit-Policy.
const (
	LimitDefault = "default"
	LimitTenant  = "tenant"
	LimitApps    = "apps"
)

// Name returns the name of the widest limit that rejects a request, and LimitDefault if none of the tenant's limits does.
func (r Rates) Name() string {
	switch {
	case r.Tenant.RetryAfter > 0:
		return LimitTenant
	case r.Apps.RetryAfter > 0:
		return LimitApps
	default:
		return LimitDefault
	}
}

// OwnLimits are the requests per minute that the platform has set for a tenant. 0 is the default.
type OwnLimits struct{ Credential, Tenant int64 }

// For returns the limits of a credential of a kind, for a tenant with its own ones. The OAuth grants of a tenant take at most half of its
// window, so that no app shuts out the tenant's own keys.
func (l Limits) For(own OwnLimits, kind string) Limits {
	if own.Credential > 0 {
		l.Credential.Max = own.Credential
	}
	if own.Tenant > 0 {
		l.Tenant.Max = own.Tenant
	}
	if kind == KindOAuth {
		l.Apps = Limit{Max: max(1, l.Tenant.Max/2), Per: l.Tenant.Per}
	}
	return l
}

func seconds(micros int64) int64 { return (micros + 999_999) / 1_000_000 }
