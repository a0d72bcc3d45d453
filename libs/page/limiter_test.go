package page

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// never is longer than any test.
const never = time.Minute

// entered waits until n deep searches of the tenant read or wait.
func (l *searchLimiter) entered(tb testing.TB, tenant ids.Tenant, n int) {
	tb.Helper()
	for end := time.Now().Add(never); time.Now().Before(end); time.Sleep(time.Millisecond) {
		l.mu.Lock()
		own := l.tenants[tenant]
		open := own != nil && own.open == n
		l.mu.Unlock()
		if open {
			return
		}
	}
	tb.Fatal("the searches do not arrive")
}

// A tenant's deep searches hold one slot, however many it sends, and one too many is refused at once.
func TestLimitOfATenant(t *testing.T) {
	t.Parallel()
	limiter, busy := newSearchLimiter(never), ids.New[ids.TenantPrefix]()
	done, err := limiter.acquire(t.Context(), busy)
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	left := make(chan error, MaxDeepPerTenant)
	for range MaxDeepPerTenant - 1 {
		go func() {
			_, err := limiter.acquire(ctx, busy)
			left <- err
		}()
	}
	limiter.entered(t, busy, MaxDeepPerTenant)
	if len(limiter.slots) != 1 {
		t.Errorf("the tenant holds %d slots", len(limiter.slots))
	}
	if _, err := limiter.acquire(t.Context(), busy); !errors.Is(err, ErrTooManySearches) {
		t.Errorf("one too many: %v", err)
	}
	for range MaxDeepSearches - 1 {
		if _, err := limiter.acquire(t.Context(), ids.New[ids.TenantPrefix]()); err != nil {
			t.Errorf("another tenant: %v", err)
		}
	}
	giveUp()
	for range MaxDeepPerTenant - 1 {
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("one that gives up: %v", err)
		}
	}
	done()
	if done, err = limiter.acquire(t.Context(), busy); err != nil {
		t.Fatal(err)
	}
	done()
	if len(limiter.tenants) != MaxDeepSearches-1 || len(limiter.slots) != MaxDeepSearches-1 {
		t.Errorf("%d tenants and %d slots are remembered", len(limiter.tenants), len(limiter.slots))
	}
}

// Tenants get slots in the order of their requests, and each waits only for a limited time.
func TestLimitOfAllTenants(t *testing.T) {
	t.Parallel()
	limiter := newSearchLimiter(never)
	var first func()
	for range MaxDeepSearches {
		done, err := limiter.acquire(t.Context(), ids.New[ids.TenantPrefix]())
		if err != nil {
			t.Fatal(err)
		}
		first = done
	}
	late := ids.New[ids.TenantPrefix]()
	got := make(chan error, 1)
	go func() {
		_, err := limiter.acquire(t.Context(), late)
		got <- err
	}()
	limiter.entered(t, late, 1)
	first()
	if err := <-got; err != nil {
		t.Errorf("a slot became free: %v", err)
	}
	limiter.wait = time.Millisecond
	if _, err := limiter.acquire(t.Context(), late); !errors.Is(err, ErrTooManySearches) {
		t.Errorf("after the tenant's own: %v", err)
	}
	if _, err := limiter.acquire(t.Context(), ids.New[ids.TenantPrefix]()); !errors.Is(err, apperr.ErrUnavailable) {
		t.Errorf("after other tenants': %v", err)
	}
	if len(limiter.slots) != MaxDeepSearches || len(limiter.tenants) != MaxDeepSearches {
		t.Errorf("those that were refused hold %d slots of %d tenants", len(limiter.slots), len(limiter.tenants))
	}
}
