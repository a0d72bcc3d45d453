package app_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/domain"
)

// A change of the state is in the lookup of each key of the tenant, in Redis, in one event and in one audit record with the reason.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	live, liveSecret := w.key(t, tenant.ID, "live")
	test, testSecret := w.key(t, tenant.ID, "test")
	_, otherSecret := w.key(t, other.ID, "live")
	expect := func(action domain.TenantAction, want domain.TenantStatus, version int64) {
		t.Helper()
		got, published, err := w.ActOnTenant(t.Context(), cli, tenant.ID, action, "because of "+string(action))
		if err != nil || !published || got.Status != want || got.Version != version || got.StatusReason != "because of "+string(action) || got.StatusChangedAt == nil {
			t.Fatalf("%s: %+v published %v: %v", action, got, published, err)
		}
		for secret, k := range map[string]domain.Key{liveSecret: live, testSecret: test} {
			p := w.lookup(t, secret)
			if p.TenantStatus != want || p.Revoked {
				t.Errorf("looked up %+v", p)
			}
			if state := w.state(t, k.ID); state != strconv.FormatInt(p.Version, 10) {
				t.Errorf("Redis says %q, want %d", state, p.Version)
			}
		}
		if p := w.lookup(t, otherSecret); p.TenantStatus != domain.TenantActive {
			t.Errorf("another tenant: %+v", p)
		}
		if n := w.count(t, `select count(*) from audit_log where action = $1 and before ->> 'status' <> $2 and after ->> 'status' = $2
			and after ->> 'status_reason' = $3`, "tenant."+string(action), string(want), "because of "+string(action)); n != 1 {
			t.Errorf("%s: %d audit records", action, n)
		}
		if n := w.count(t, `select count(*) from outbox where aggregate_id = $1 and position(convert_to($2, 'UTF8') in message) > 0`,
			tenant.ID.String(), `"status":"`+string(want)+`"`); n != 1 {
			t.Errorf("%s: %d events say %s", action, n, want)
		}
	}
	expect(domain.SuspendTenant, domain.TenantSuspended, 2)
	if _, _, err := w.ActOnTenant(t.Context(), cli, tenant.ID, domain.SuspendTenant, "again"); !errors.Is(err, domain.ErrTenantTransition) {
		t.Errorf("suspended twice: %v", err)
	}
	expect(domain.ResumeTenant, domain.TenantActive, 3)
	if _, _, err := w.ActOnTenant(t.Context(), cli, ids.New[ids.TenantPrefix](), domain.SuspendTenant, "why"); !errors.Is(err, domain.ErrTenantNotFound) {
		t.Errorf("an unknown tenant: %v", err)
	}
	w.holds(t, tenant, 5)
}

// Of parallel suspensions, one takes effect.
func TestOneSuspensionWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	const attempts = 8
	errs := make([]error, attempts)
	var all sync.WaitGroup
	for i := range attempts {
		all.Go(func() { _, _, errs[i] = w.ActOnTenant(t.Context(), cli, tenant.ID, domain.SuspendTenant, "why") })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, domain.ErrTenantTransition) {
			t.Error(err)
		}
	}
	if n := w.count(t, `select count(*) from audit_log where action = 'tenant.suspend'`); won != 1 || n != 1 {
		t.Errorf("%d suspensions succeeded, %d audit records", won, n)
	}
}

// While Redis is unavailable, a suspension is committed, and it is published later.
func TestSuspendWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, secret := w.key(t, tenant.ID, "live")
	restore := w.breakRedis(t)
	got, published, err := w.ActOnTenant(t.Context(), cli, tenant.ID, domain.SuspendTenant, "why")
	if err != nil || published || got.Status != domain.TenantSuspended || w.lookup(t, secret).TenantStatus != domain.TenantSuspended {
		t.Fatalf("%+v published %v: %v", got, published, err)
	}
	restore()
	if err := w.PublishInvalidations(t.Context(), ids.Tenant{}); err != nil {
		t.Fatal(err)
	}
	if state := w.state(t, k.ID); state != "3" {
		t.Errorf("Redis says %q", state)
	}
}
