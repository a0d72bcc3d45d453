package app

import (
	"context"
	"reflect"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// CreateTenant adds a tenant with the default policy. Of t the slug, name, timezone, currency and country
// are read.
func (a *App) CreateTenant(ctx context.Context, by domain.Origin, t domain.Tenant) (domain.Tenant, error) {
	at := a.now()
	t.ID, t.Policy, t.Version, t.CreatedAt, t.UpdatedAt = ids.New[ids.TenantPrefix](), domain.DefaultPolicy(), 1, at, at
	t = t.Changed(domain.TenantChange{})
	if err := t.Check(); err != nil {
		return domain.Tenant{}, err
	}
	ctx = scope(ctx, t.ID, caller.Live)
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := store.InsertTenant(ctx, tx, t); err != nil {
			return err
		}
		return a.audit(ctx, tx, by, change{domain.TenantCreated, t.ID.String(), nil, view.TenantForAdmin(t)})
	})
	return t, err
}

// UpdateTenant changes a tenant's settings and tells the gateways and, by event, the services. A change that
// changes nothing leaves no trace. published is false while Redis has still to learn of it.
func (a *App) UpdateTenant(ctx context.Context, by domain.Origin, id ids.Tenant, c domain.TenantChange) (t domain.Tenant, published bool, err error) {
	ctx = scope(ctx, id, caller.Live)
	changed := false
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		old, err := store.TenantForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		t = old.Changed(c)
		if changed = !reflect.DeepEqual(old, t); !changed {
			return nil
		}
		return a.writeTenant(ctx, tx, by, old, &t)
	})
	if err != nil || !changed {
		return t, true, err
	}
	return t, a.publish(ctx, id), nil
}

func (a *App) writeTenant(ctx context.Context, tx pg.Tx, by domain.Origin, old domain.Tenant, t *domain.Tenant) error {
	if err := t.Check(); err != nil {
		return err
	}
	var err error
	t.UpdatedAt = a.now()
	if *t, err = store.UpdateTenant(ctx, tx, *t); err != nil {
		return err
	}
	if err := store.InvalidateTenantKeys(ctx, tx); err != nil {
		return err
	}
	if err := tenantUpdated(ctx, tx, *t); err != nil {
		return err
	}
	if a.Wake != nil {
		tx.AfterCommit(a.Wake)
	}
	return a.audit(ctx, tx, by, change{domain.TenantUpdated, t.ID.String(), view.TenantForAdmin(old), view.TenantForAdmin(*t)})
}

// Tenant finds a tenant by its id or slug.
func (a *App) Tenant(ctx context.Context, ref string) (t domain.Tenant, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		t, err = store.FindTenant(ctx, tx, ref)
		return err
	})
	return t, err
}

// Tenants returns every tenant by slug.
func (a *App) Tenants(ctx context.Context) (all []domain.Tenant, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		all, err = store.Tenants(ctx, tx)
		return err
	})
	return all, err
}
