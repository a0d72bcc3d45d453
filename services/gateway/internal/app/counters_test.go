package app

import (
	"testing"
	"time"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// checked makes 1,000 requests and fails the test unless Redis is asked about all of them, or about a few if the window is full.
func checked(t *testing.T, name string, full bool, reject func() bool) {
	t.Helper()
	begin, queries := time.Now(), 0
	for range 1000 {
		if !reject() {
			queries++
		}
	}
	switch most := maxChecks * (1 + int(time.Since(begin)/checkPeriod)); {
	case !full && queries != 1000:
		t.Errorf("%s: not full, but Redis is asked about %d of 1000", name, queries)
	case full && (queries < maxChecks || queries > most):
		t.Errorf("%s: Redis is asked about %d, want %d to %d", name, queries, maxChecks, most)
	}
}

// Redis is asked about each request of a window that is not full, or not known, and about few of one that is.
func TestFewRequestsOfAFullWindowAreChecked(t *testing.T) {
	t.Parallel()
	limit := domain.Limit{Max: 10, Per: time.Hour.Microseconds()}
	limits := domain.Limits{Credential: limit, Tenant: domain.Limit{Max: 20, Per: limit.Per}}
	now := time.Now().UnixMicro()
	for _, c := range []struct {
		name        string
		own, tenant int64 // counted; -1: not known
		apps        int64 // 0 for a key
		full        bool
	}{
		{"nothing is known", -1, -1, 0, false},
		{"the tenant is not known", 10, -1, 0, false},
		{"room", 9, 19, 0, false},
		{"the credential", 10, 19, 0, true},
		{"the tenant", 9, 20, 0, true},
		{"both", 10, 20, 0, true},
		{"the apps are not known", 10, 19, -1, false},
		{"room for apps", 9, 19, 9, false},
		{"the apps", 9, 19, 10, true},
	} {
		limits := limits
		if c.apps != 0 {
			limits = limits.For(domain.OwnLimits{}, domain.KindOAuth)
		}
		counters, names, h := NewCounters(10), NewCounters(10), store.Holder{Tenant: "tn_1", Mode: "test", Credential: "key_1"}
		if c.own >= 0 {
			counters.Adopt(h.Credential, domain.Window{Start: now, Cur: c.own}, now)
			names.Adopt(h.Credential, domain.Window{Start: now, Cur: c.own}, now)
		}
		if c.tenant >= 0 {
			counters.Adopt(allOf(h), domain.Window{Start: now, Cur: c.tenant}, now)
		}
		if c.apps > 0 {
			counters.Adopt(appsOf(h), domain.Window{Start: now, Cur: c.apps}, now)
		}
		if full := counters.Full(h, limits); full != (c.own >= limit.Max || c.tenant >= limits.Tenant.Max || c.apps >= 10) {
			t.Errorf("%s: full is %t", c.name, full)
		}
		checked(t, c.name, c.full, func() bool {
			rates, rejected := counters.RejectAny(h, limits)
			if rejected && rates.RetryAfter() == 0 {
				t.Errorf("%s: rejected, but allowed now", c.name)
			}
			return rejected
		})
		checked(t, c.name+", without a tenant", c.own >= limit.Max, func() bool {
			_, rejected := names.Reject(h.Credential, limit)
			return rejected
		})
		if c.full {
			time.Sleep(checkPeriod)
			if _, rejected := counters.RejectAny(h, limits); rejected {
				t.Errorf("%s: Redis is not asked again after the period", c.name)
			}
		}
	}
}
