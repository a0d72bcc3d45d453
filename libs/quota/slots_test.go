package quota

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

var limits = Limits{Work: "documents", All: 3, PerTenant: 2, Waiting: 2, Wait: time.Second}

func acquire(t *testing.T, s *Slots, tenant ids.Tenant) (release func()) {
	t.Helper()
	release, err := s.Acquire(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func isTooMany(err error) bool {
	e := apperr.As(err)
	return e.Kind == apperr.RateLimited && strings.Contains(e.Message, "too many documents")
}

// A tenant under heavy load never holds the slots of another tenant. The other tenant gets a slot immediately.
func TestOneTenantNeverQueuesBehindAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, busy, other := NewSlots(limits), ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
		first := acquire(t, s, busy)
		acquire(t, s, busy)
		waited := make(chan error, limits.Waiting)
		for range limits.Waiting {
			go func() {
				_, err := s.Acquire(t.Context(), busy)
				waited <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		if _, err := s.Acquire(t.Context(), busy); !isTooMany(err) || time.Since(start) != 0 {
			t.Errorf("one too many after %v: %v", time.Since(start), err)
		}
		acquire(t, s, other)()
		if took := time.Since(start); took != 0 {
			t.Errorf("another tenant waited %v", took)
		}
		first()
		if err := <-waited; err != nil {
			t.Errorf("the one that waited for a slot that is free now: %v", err)
		}
		if err := <-waited; !isTooMany(err) || time.Since(start) != limits.Wait {
			t.Errorf("the one that waited in vain, after %v: %v", time.Since(start), err)
		}
	})
}

// Tenants wait for each other at most as long as the limits allow, and their released slots are removed.
func TestAllSlotsAreTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(limits)
		var release []func()
		for range limits.All {
			release = append(release, acquire(t, s, ids.New[ids.TenantPrefix]()))
		}
		start := time.Now()
		_, err := s.Acquire(t.Context(), ids.New[ids.TenantPrefix]())
		if apperr.As(err).Kind != apperr.Unavailable || time.Since(start) != limits.Wait {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Acquire(gone, ids.New[ids.TenantPrefix]()); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has gone: %v", err)
		}
		for _, f := range release {
			f()
		}
		if len(s.tenants.clients) != 0 || len(s.slots) != 0 {
			t.Errorf("%d tenants and %d slots are stored", len(s.tenants.clients), len(s.slots))
		}
	})
}

// A limit without waiting returns an error immediately. It grants a free slot regardless of the timer.
func TestSlotsWithoutWaiting(t *testing.T) {
	t.Parallel()
	s, tenant := NewSlots(Limits{Work: "documents", All: 2, PerTenant: 1}), ids.New[ids.TenantPrefix]()
	for range 100 {
		acquire(t, s, tenant)()
	}
	acquire(t, s, tenant)
	if _, err := s.Acquire(t.Context(), tenant); !isTooMany(err) {
		t.Errorf("error %v", err)
	}
}

// Work that rests holds its tenant's slot for another two times its duration, and no slot of the others.
func TestSlotsRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, busy, other := NewSlots(Limits{Work: "documents", All: 1, PerTenant: 1, Waiting: 1, Wait: time.Minute, Rests: true}),
			ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
		release := acquire(t, s, busy)
		time.Sleep(2 * time.Second)
		release()
		start := time.Now()
		acquire(t, s, other)()
		if took := time.Since(start); took != 0 {
			t.Errorf("another tenant waited %v", took)
		}
		acquire(t, s, busy)()
		if took := time.Since(start); took != restFactor*2*time.Second {
			t.Errorf("the tenant that worked for two seconds waited %v", took)
		}
		synctest.Wait()
		if len(s.tenants.clients) != 0 {
			t.Errorf("%d tenants are remembered", len(s.tenants.clients))
		}
	})
}
