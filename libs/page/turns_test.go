package page

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// never is a wait that a test does not see the end of.
const never = time.Minute

// entered waits until so many deep searches of the tenant read or wait.
func (t *turns) entered(tb testing.TB, tenant ids.Tenant, n int) {
	tb.Helper()
	for end := time.Now().Add(never); time.Now().Before(end); time.Sleep(time.Millisecond) {
		t.mu.Lock()
		own := t.tenants[tenant]
		under := own != nil && own.under == n
		t.mu.Unlock()
		if under {
			return
		}
	}
	tb.Fatal("they do not come")
}

// A tenant's deep searches hold one place, however many it sends, and one too many is refused at once.
func TestTurnsOfATenant(t *testing.T) {
	t.Parallel()
	turns, busy := newTurns(never), ids.New[ids.TenantPrefix]()
	done, err := turns.take(t.Context(), busy)
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	left := make(chan error, DeepPerTenant)
	for range DeepPerTenant - 1 {
		go func() {
			_, err := turns.take(ctx, busy)
			left <- err
		}()
	}
	turns.entered(t, busy, DeepPerTenant)
	if len(turns.all) != 1 {
		t.Errorf("the tenant holds %d places", len(turns.all))
	}
	if _, err := turns.take(t.Context(), busy); !errors.Is(err, ErrDeep) {
		t.Errorf("one too many: %v", err)
	}
	for range DeepAtOnce - 1 {
		if _, err := turns.take(t.Context(), ids.New[ids.TenantPrefix]()); err != nil {
			t.Errorf("another tenant: %v", err)
		}
	}
	giveUp()
	for range DeepPerTenant - 1 {
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("one that gives up: %v", err)
		}
	}
	done()
	if done, err = turns.take(t.Context(), busy); err != nil {
		t.Fatal(err)
	}
	done()
	if len(turns.tenants) != DeepAtOnce-1 || len(turns.all) != DeepAtOnce-1 {
		t.Errorf("%d tenants and %d places are remembered", len(turns.tenants), len(turns.all))
	}
}

// The tenant whose turn comes next waits before one that came later, and each waits only so long.
func TestTurnsOfAll(t *testing.T) {
	t.Parallel()
	turns := newTurns(never)
	var first func()
	for range DeepAtOnce {
		done, err := turns.take(t.Context(), ids.New[ids.TenantPrefix]())
		if err != nil {
			t.Fatal(err)
		}
		first = done
	}
	late := ids.New[ids.TenantPrefix]()
	got := make(chan error, 1)
	go func() {
		_, err := turns.take(t.Context(), late)
		got <- err
	}()
	turns.entered(t, late, 1)
	first()
	if err := <-got; err != nil {
		t.Errorf("a place became free: %v", err)
	}
	turns.wait = time.Millisecond
	if _, err := turns.take(t.Context(), late); !errors.Is(err, ErrDeep) {
		t.Errorf("behind the tenant's own: %v", err)
	}
	if _, err := turns.take(t.Context(), ids.New[ids.TenantPrefix]()); !errors.Is(err, apperr.ErrUnavailable) {
		t.Errorf("behind other tenants': %v", err)
	}
	if len(turns.all) != DeepAtOnce || len(turns.tenants) != DeepAtOnce {
		t.Errorf("those that waited in vain hold %d places of %d tenants", len(turns.all), len(turns.tenants))
	}
}
