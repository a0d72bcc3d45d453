package app_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// clock returns the tenant's test clock in a look-up and in the newest event.
func (w *world) clock(t *testing.T, secret string, tenant ids.Tenant) (looked, published *time.Time) {
	t.Helper()
	var raw []byte
	err := w.owner.QueryRow(t.Context(), `select message from outbox where aggregate_id = $1 order by seq desc limit 1`, tenant.String()).Scan(&raw)
	if err != nil {
		t.Fatal(err)
	}
	e, err := outbox.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	var object internalapi.Tenant
	if err := json.Unmarshal(e.Object, &object); err != nil {
		t.Fatal(err)
	}
	return w.lookup(t, secret).Clock, object.Clock
}

func TestClockMovesForwardOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	real := time.Date(2030, 1, 1, 12, 0, 0, 500, time.UTC) // 500 ns are below the column's precision
	w.Now = func() time.Time { return real }
	tenant, other := w.tenant(t), w.tenant(t)
	test, testSecret := w.key(t, tenant.ID, "test")
	live, liveSecret := w.key(t, tenant.ID, "live")
	_, otherSecret := w.key(t, other.ID, "test")
	set := func(at *time.Time, version int64) {
		t.Helper()
		got, published, err := w.SetClock(t.Context(), cli, tenant.ID, at)
		if err != nil || !published || got.Version != version || (got.Clock == nil) != (at == nil) || at != nil && !got.Clock.Equal(at.Truncate(time.Microsecond)) {
			t.Fatalf("set %v: %+v published %v: %v", at, got, published, err)
		}
	}
	back := func(at time.Time) {
		t.Helper()
		_, _, err := w.SetClock(t.Context(), cli, tenant.ID, &at)
		if e := apperr.As(err); e.Kind != apperr.Invalid || e.Fields[0].Field != "now" {
			t.Errorf("back to %s: %v", at, err)
		}
	}
	back(real.Add(-time.Microsecond))
	set(nil, 1)
	set(&real, 2) // the effective time itself
	set(&real, 2)
	later := real.Add(90 * 24 * time.Hour).Add(123 * time.Nanosecond)
	set(&later, 3)
	set(new(later.In(time.FixedZone("", 7200))), 3)
	back(later.Add(-time.Microsecond))
	back(real)
	real = real.Add(200 * 24 * time.Hour) // the frozen time counts, not the real one that overtook it
	set(new(later.Add(time.Hour)), 4)
	looked, published := w.clock(t, testSecret, tenant.ID)
	if want := later.Add(time.Hour).Truncate(time.Microsecond); looked == nil || !looked.Equal(want) || published == nil || !published.Equal(want) {
		t.Errorf("looked up %v, published %v, want %v", looked, published, want)
	}
	if p := w.lookup(t, liveSecret); p.Clock != nil || p.Version != 5 {
		t.Errorf("the live key: %+v", p)
	}
	if p := w.lookup(t, otherSecret); p.Clock != nil {
		t.Errorf("another tenant: %+v", p)
	}
	for _, k := range []domain.Key{test, live} {
		if state := w.state(t, k.ID); state != "5" {
			t.Errorf("Redis says %q", state)
		}
	}
	set(nil, 5)
	set(nil, 5)
	if looked, published := w.clock(t, testSecret, tenant.ID); looked != nil || published != nil {
		t.Errorf("looked up %v, published %v", looked, published)
	}
	back(real.Add(-time.Second)) // real time again
	w.published(t, tenant.ID, 5)
	w.holds(t, tenant, 7)
	if n := w.count(t, `select count(*) from audit_log where action = 'tenant.update' and before ->> 'test_clock' is distinct from after ->> 'test_clock'`); n != 4 {
		t.Errorf("%d audit records show the clock", n)
	}
	if _, _, err := w.SetClock(t.Context(), cli, ids.New[ids.TenantPrefix](), nil); !errors.Is(err, domain.ErrTenantNotFound) {
		t.Errorf("an unknown tenant: %v", err)
	}
}

// TestClockSurvivesOtherChanges checks that other changes of the tenant do not change the clock.
func TestClockSurvivesOtherChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	if _, _, err := w.SetClock(t.Context(), cli, tenant.ID, &at); err != nil {
		t.Fatal(err)
	}
	got, _, err := w.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantPatch{Name: patch.Value(strings.Repeat("n", 3))})
	if err != nil || got.Clock == nil || !got.Clock.Equal(at) || got.Version != 3 {
		t.Errorf("%+v: %v", got, err)
	}
}
