package peerstest

import (
	"context"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/testclock"
)

// SetClock implements app.ClockOwner as identity does: the clock only moves forward, and a call with the same time changes
// nothing.
func (f *Tenants) SetClock(ctx context.Context, at *time.Time) (testclock.Clock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return testclock.Clock{}, f.fail
	}
	tenant := caller.FromContext(ctx).Tenant
	was := f.clock(tenant)
	if at != nil && at.Before(was.Now(time.Now())) {
		return testclock.Clock{}, apperr.Field("now", "Must not be before the clock's time.")
	}
	if was.FrozenAt == nil && at == nil || was.FrozenAt != nil && at != nil && at.Equal(*was.FrozenAt) {
		return was, nil
	}
	is := testclock.Clock{FrozenAt: at, Version: was.Version + 1}
	f.clocks[tenant] = is
	return is, nil
}

// Clock returns the tenant's test clock as identity would report it to the gateway.
func (f *Tenants) Clock(tenant ids.Tenant) testclock.Clock {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock(tenant)
}

func (f *Tenants) clock(tenant ids.Tenant) testclock.Clock {
	if f.clocks == nil {
		f.clocks = map[ids.Tenant]testclock.Clock{}
	}
	if c, ok := f.clocks[tenant]; ok {
		return c
	}
	return testclock.Clock{Version: 1}
}
