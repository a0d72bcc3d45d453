package app_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// service is a service from which tenants are erased.
type service struct {
	mu    sync.Mutex
	wait  string
	down  bool
	steps int // that report that rows are left
	calls int
}

var errDown = errors.New("it is down")

func (s *service) Prepare(context.Context, ids.Tenant) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return "", errDown
	}
	return s.wait, nil
}

func (s *service) Step(context.Context, ids.Tenant) (erasure.Progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.down {
		return erasure.Progress{}, errDown
	}
	s.steps--
	return erasure.Progress{Erased: s.steps < 0, Deleted: 7}, nil
}

func (s *service) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// erasures returns the worker of a new process.
func (w *world) erasures(services map[string]app.ErasureService) *app.Erasures {
	return &app.Erasures{App: w.App, Own: &erasure.Eraser{Worker: w.db.Worker}, Services: services, Platform: ids.FromUUID[ids.TenantPrefix]([16]byte{15: 1})}
}

// close closes a tenant whose erasure is due at once.
func (w *world) close(t *testing.T, tenant ids.Tenant) {
	t.Helper()
	w.ClosingPeriod = 0
	got, published, err := w.ActOnTenant(t.Context(), cli, tenant, domain.CloseTenant, "The contract has ended.")
	if err != nil || !published || got.Status != domain.TenantClosing || got.EraseAt == nil {
		t.Fatalf("%+v %v %v", got, published, err)
	}
}

// rowsOf counts the rows of identity that contain the id of a tenant.
func (w *world) rowsOf(t *testing.T, tenant ids.Tenant) int {
	t.Helper()
	n := 0
	for _, table := range []string{"tenants", "api_keys", "audit_log", "audit_heads", "memberships", "key_signals", "outbox", "oauth_apps", "idempotency_keys"} {
		n += w.count(t, `select count(*) from `+table+` where tenant_id = $1`, tenant)
	}
	return n
}

// A tenant is erased after all services have confirmed it. A service that is down, or has only begun, does not count.
func TestErasureWaitsForEachService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	w.key(t, tenant.ID, "live")
	w.key(t, other.ID, "live")
	before := w.rowsOf(t, other.ID)
	w.close(t, tenant.ID)
	slow, down := &service{steps: 25}, &service{}
	services := map[string]app.ErasureService{"slow": slow, "down": down}
	if err := w.erasures(map[string]app.ErasureService{"slow": &service{wait: "Two payments are open."}, "down": down}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err := w.ErasureOf(t.Context(), tenant.ID); err != nil || e.Begun != nil || e.WaitsFor != "Two payments are open." {
		t.Fatalf("%+v, %v", e, err)
	}
	if w.count(t, `select count(*) from tenant_erasures`) != 0 {
		t.Fatal("the erasure has begun")
	}
	down.set(true)
	if err := w.erasures(services).Run(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("a service that is down: %v", err)
	}
	if e, err := w.ErasureOf(t.Context(), tenant.ID); err != nil || e.Begun != nil || !strings.Contains(e.WaitsFor, "did not respond") {
		t.Fatalf("%+v, %v", e, err)
	}
	down.set(false)
	if err := w.erasures(map[string]app.ErasureService{"slow": slow, "down": &failing{down}}).Run(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("a service that fails: %v", err)
	}
	e, err := w.ErasureOf(t.Context(), tenant.ID)
	if err != nil || e.Begun == nil || e.Begun.ErasedAt != nil || e.Begun.ClosedBy != "cli cli:tester@here" || w.rowsOf(t, tenant.ID) == 0 {
		t.Fatalf("%+v, %v", e.Begun, err)
	}
	if _, _, err := w.ActOnTenant(t.Context(), cli, tenant.ID, domain.ReopenTenant, "back"); !errors.Is(err, domain.ErrTenantNotFound) {
		t.Errorf("reopened while it is being erased: %v", err)
	}
	w.exec(t, `update tenant_erasures set leased_until = '-infinity'`) // as if its time were over
	if err := w.erasures(services).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err = w.ErasureOf(t.Context(), tenant.ID)
	if err != nil || e.Begun.ErasedAt == nil || e.Begun.Services["slow"] != 7 || e.Begun.Services["down"] != 7 || e.Begun.Deleted == 0 {
		t.Fatalf("%+v, %v", e.Begun, err)
	}
	if n := w.rowsOf(t, tenant.ID); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if n := w.rowsOf(t, other.ID); n != before {
		t.Errorf("another tenant has %d rows, want %d", n, before)
	}
	calls := slow.calls
	if err := w.erasures(services).Run(t.Context()); err != nil || slow.calls != calls {
		t.Errorf("%d calls after the erasure, %v", slow.calls-calls, err)
	}
}

// failing is a service that is ready and then fails.
type failing struct{ *service }

func (f *failing) Step(context.Context, ids.Tenant) (erasure.Progress, error) {
	return erasure.Progress{}, errDown
}

// Of a reopening and the worker, one takes effect: the tenant is active with all its rows, or erased.
func TestReopenAgainstErasure(t *testing.T) {
	t.Parallel()
	for range 5 {
		w := newWorld(t)
		tenant := w.tenant(t)
		w.key(t, tenant.ID, "live")
		w.close(t, tenant.ID)
		var reopened atomic.Bool
		var all sync.WaitGroup
		all.Go(func() {
			_, _, err := w.ActOnTenant(t.Context(), cli, tenant.ID, domain.ReopenTenant, "they stay")
			if err != nil && !errors.Is(err, domain.ErrTenantTransition) && !errors.Is(err, domain.ErrTenantNotFound) {
				t.Error(err)
			}
			reopened.Store(err == nil)
		})
		for range 2 { // replicas
			all.Go(func() {
				if err := w.erasures(map[string]app.ErasureService{"one": &service{}}).Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		erased := w.count(t, `select count(*) from tenant_erasures where erased_at is not null`) == 1
		if rows := w.rowsOf(t, tenant.ID); reopened.Load() == erased || erased != (rows == 0) {
			t.Errorf("reopened %v, erased %v, %d rows", reopened.Load(), erased, rows)
		}
	}
}

// Nothing of a closing tenant is erased before its time.
func TestErasureIsNotEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	w.ClosingPeriod = time.Hour
	if _, _, err := w.ActOnTenant(t.Context(), cli, tenant.ID, domain.CloseTenant, "The contract has ended."); err != nil {
		t.Fatal(err)
	}
	one := &service{}
	if err := w.erasures(map[string]app.ErasureService{"one": one}).Run(t.Context()); err != nil || one.calls != 0 || w.rowsOf(t, tenant.ID) == 0 {
		t.Errorf("%d calls, %v", one.calls, err)
	}
	if e, err := w.ErasureOf(t.Context(), tenant.ID); err != nil || e.Begun != nil || e.Tenant.StatusChangedBy != "cli cli:tester@here" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := w.ErasureOf(t.Context(), w.tenant(t).ID); !errors.Is(err, domain.ErrErasureNotFound) {
		t.Errorf("of an active tenant: %v", err)
	}
	if _, err := w.ErasureOf(t.Context(), ids.New[ids.TenantPrefix]()); !errors.Is(err, domain.ErrErasureNotFound) {
		t.Errorf("of an unknown tenant: %v", err)
	}
}
