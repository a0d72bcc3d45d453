package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

const (
	erasureLease   = 15 * time.Second // longer than one call; two processes that continue one erasure do no harm
	erasureRetry   = 10 * time.Second // after a failed call
	closingsBatch  = 100
	erasureRounds  = 10 // steps of one erasure before the others continue
	preparingEvery = time.Minute
)

// ErasureService is a service from which tenants are erased. peers.Erasure implements it.
type ErasureService interface {
	// Prepare ends what must not be lost, and returns what the erasure still waits for, or "".
	Prepare(ctx context.Context, tenant ids.Tenant) (wait string, err error)
	// Step deletes rows of the tenant. A service has confirmed the erasure only if Erased is true.
	Step(ctx context.Context, tenant ids.Tenant) (erasure.Progress, error)
}

// Erasures erases closing tenants whose time is over from all services, and then from this one. Any number of processes can run it at
// the same time, and each step can be repeated.
type Erasures struct {
	App      *App
	Own      *erasure.Eraser
	Services map[string]ErasureService // by name
	Platform ids.Tenant                // the owner of the stored responses of the platform API

	prepared map[ids.Tenant]time.Time // when this process last prepared an erasure that has to wait
}

// Run begins the erasures that are due, and continues those that have begun.
func (a *Erasures) Run(ctx context.Context) error {
	err := a.beginDue(ctx)
	for ctx.Err() == nil {
		e, taken := a.take(ctx)
		if errors.Is(taken, domain.ErrErasureNotFound) {
			return err
		}
		if taken != nil {
			return errors.Join(err, taken)
		}
		err = errors.Join(err, a.proceed(ctx, e))
	}
	return err
}

// beginDue begins the erasure of each closing tenant whose time is over, unless a service is not ready.
func (a *Erasures) beginDue(ctx context.Context) error {
	var failed error
	now, after := a.App.now(), ids.Tenant{}
	waiting := map[ids.Tenant]time.Time{}
	for {
		var list []domain.Closing
		err := a.App.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			list, err = store.DueClosings(ctx, tx, now, after, closingsBatch)
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range list {
			if last := a.prepared[c.TenantID]; now.Sub(last) < preparingEvery {
				waiting[c.TenantID] = last
				continue
			}
			begun, err := a.begin(ctx, c)
			if !begun {
				waiting[c.TenantID] = now
			}
			failed = errors.Join(failed, err)
			after = c.TenantID
		}
		if len(list) < closingsBatch {
			a.prepared = waiting
			return failed
		}
		after = list[len(list)-1].TenantID
	}
}

// begin begins the erasure of a tenant if all services are ready. Otherwise it records what the erasure waits for.
func (a *Erasures) begin(ctx context.Context, c domain.Closing) (bool, error) {
	wait, err := a.prepare(ctx, c.TenantID)
	if err != nil {
		wait = "A service did not respond. The erasure begins as soon as all of them do."
	}
	if wait == "" {
		return a.start(ctx, c.TenantID)
	}
	if wait == c.WaitsFor {
		return false, err
	}
	return false, errors.Join(err, a.App.DB.Tx(scope(ctx, c.TenantID, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		return store.SetErasureWaitsFor(ctx, tx, wait)
	}))
}

func (a *Erasures) prepare(ctx context.Context, tenant ids.Tenant) (wait string, err error) {
	for _, name := range slices.Sorted(maps.Keys(a.Services)) {
		if wait, err = a.Services[name].Prepare(ctx, tenant); err != nil || wait != "" {
			return wait, err
		}
	}
	return "", nil
}

// start makes the erasure irrevocable, unless the tenant was reopened in the meantime.
func (a *Erasures) start(ctx context.Context, tenant ids.Tenant) (bool, error) {
	by := domain.Origin{Actor: "svc:identity", Source: "erasure"}
	err := a.App.DB.Tx(scope(ctx, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		old, err := store.TenantForUpdate(ctx, tx)
		if err != nil {
			return err
		}
		t, err := old.Erase(a.App.now())
		if err != nil {
			return err
		}
		if _, err := a.App.writeTenant(ctx, tx, by, domain.EraseTenant.Audited(), old, t); err != nil {
			return err
		}
		if err := a.endApps(ctx, tx); err != nil {
			return err
		}
		return store.InsertErasure(ctx, tx, old.StatusChangedBy)
	})
	if errors.Is(err, domain.ErrTenantTransition) || errors.Is(err, domain.ErrTenantNotFound) { // reopened, or begun by another process
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("begin the erasure of %s: %w", tenant, err)
	}
	a.App.publish(ctx, ids.Tenant{}) // grants of its apps belong to other tenants too
	a.App.Log.InfoContext(ctx, "tenant erasure started", slog.String("tenant", tenant.String()))
	return true, nil
}

// endApps ends the apps of the caller's tenant, and their grants at all tenants.
func (a *Erasures) endApps(ctx context.Context, tx pg.Tx) error {
	list, err := store.DeleteApps(ctx, tx, a.App.now())
	if err != nil {
		return err
	}
	for _, id := range list {
		if err := store.InvalidateGrants(ctx, tx, &id, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *Erasures) take(ctx context.Context) (e domain.Erasure, err error) {
	now := time.Now()
	err = a.App.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		e, err = store.TakeErasure(ctx, tx, now, now.Add(erasureLease))
		return err
	})
	return e, err
}

// proceed makes some steps of an erasure, and leaves the rest to a later call.
func (a *Erasures) proceed(ctx context.Context, e domain.Erasure) error {
	var err error
	done := false
	for range erasureRounds {
		if done, err = a.round(ctx, &e); done || err != nil {
			break
		}
	}
	if done {
		a.App.Log.InfoContext(ctx, "tenant erased", slog.String("tenant", e.TenantID.String()))
		return nil
	}
	until := time.Now()
	if err != nil {
		until = until.Add(erasureRetry)
		err = fmt.Errorf("erase tenant %s: %w", e.TenantID, err)
	}
	return errors.Join(err, a.renew(ctx, e.TenantID, until))
}

func (a *Erasures) renew(ctx context.Context, tenant ids.Tenant, until time.Time) error {
	return a.App.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.RenewErasure(ctx, tx, tenant, until) })
}

// round makes a step in each service that has not confirmed the erasure. If all have, it makes a step in this one. A service that fails
// does not delay the others.
func (a *Erasures) round(ctx context.Context, e *domain.Erasure) (done bool, err error) {
	confirmed := true
	for _, name := range slices.Sorted(maps.Keys(a.Services)) {
		if _, ok := e.Services[name]; ok {
			continue
		}
		p, failed := a.step(ctx, a.Services[name].Step, e.TenantID)
		if failed != nil || !p.Erased {
			confirmed = false
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
			}
			continue
		}
		e.Services[name] = p.Deleted
		if failed := a.confirm(ctx, e.TenantID, name, p.Deleted); failed != nil {
			return false, errors.Join(err, failed)
		}
	}
	if err != nil || !confirmed {
		return false, err
	}
	return a.own(ctx, e.TenantID)
}

// step renews the lease of this process and makes one step in a service.
func (a *Erasures) step(
	ctx context.Context, next func(context.Context, ids.Tenant) (erasure.Progress, error), tenant ids.Tenant,
) (erasure.Progress, error) {
	if err := a.renew(ctx, tenant, time.Now().Add(erasureLease)); err != nil {
		return erasure.Progress{}, err
	}
	return next(ctx, tenant)
}

func (a *Erasures) confirm(ctx context.Context, tenant ids.Tenant, service string, deleted int64) error {
	return a.App.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.ConfirmErasure(ctx, tx, tenant, service, deleted)
	})
}

// own makes a step in this service's database. The rows without a tenant come first, because the others name them.
func (a *Erasures) own(ctx context.Context, tenant ids.Tenant) (done bool, err error) {
	erased := 0
	err = a.App.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		if erased, err = store.EraseMembersOfOnly(ctx, tx, tenant, a.App.now()); err != nil {
			return err
		}
		return store.ReleaseApps(ctx, tx, tenant)
	})
	if err != nil || erased > 0 {
		return false, err
	}
	err = a.App.DB.Tx(scope(ctx, a.Platform, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		return store.DeletePlatformResponses(ctx, tx, tenant)
	})
	if err != nil {
		return false, err
	}
	p, err := a.step(ctx, a.Own.Step, tenant)
	return p.Erased, err
}

// ErasureOf returns how far the erasure of a tenant is: the tenant until the erasure has begun, and the erasure from then on.
func (a *App) ErasureOf(ctx context.Context, tenant ids.Tenant) (out view.Erasure, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		e, err := store.Erasure(ctx, tx, tenant)
		if err == nil {
			out.Begun = &e
			return nil
		}
		if !errors.Is(err, domain.ErrErasureNotFound) {
			return err
		}
		t, missing := store.FindTenant(ctx, tx, tenant.String())
		if errors.Is(missing, domain.ErrTenantNotFound) || missing == nil && t.Status != domain.TenantClosing {
			return err
		}
		if missing != nil {
			return missing
		}
		out.Tenant = t
		out.WaitsFor, err = store.ErasureWaitsFor(ctx, tx, tenant)
		return err
	})
	return out, err
}

// TenantKnown returns domain.ErrTenantNotFound unless the tenant exists or is erased.
func (a *App) TenantKnown(ctx context.Context, tenant ids.Tenant) error {
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.Erasure(ctx, tx, tenant)
		if errors.Is(err, domain.ErrErasureNotFound) {
			_, err = store.FindTenant(ctx, tx, tenant.String())
		}
		return err
	})
}
