package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
)

// Frozen returns the tenant with its test clock at the given time. It must not be before the effective time, which is the frozen
// time or otherwise real. An earlier time is a 422 for now.
func (t Tenant) Frozen(at, real time.Time) (Tenant, error) {
	effective := real
	if t.Clock != nil {
		effective = *t.Clock
	}
	if at.Before(effective) {
		return Tenant{}, apperr.Field("now", "Must not be before %s: the clock only moves forward.", effective.UTC().Format(time.RFC3339Nano))
	}
	t.Clock = &at
	return t, nil
}

// Unfrozen returns the tenant with real time in test mode.
func (t Tenant) Unfrozen() Tenant {
	t.Clock = nil
	return t
}

// sameClock reports whether both tenants' clocks have the same time, or both use real time.
func (t Tenant) sameClock(other Tenant) bool {
	if t.Clock == nil || other.Clock == nil {
		return t.Clock == other.Clock
	}
	return t.Clock.Equal(*other.Clock)
}
