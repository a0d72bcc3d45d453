package app

import (
	"context"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// CreateTenant adds a tenant. Booking policy settings that in does not contain get their defaults.
func (a *App) CreateTenant(ctx context.Context, by domain.Origin, slug string, in domain.TenantPatch) (domain.Tenant, error) {
	t, err := a.newTenant(slug, in)
	if err != nil {
		return domain.Tenant{}, err
	}
	err = a.DB.Tx(scope(ctx, t.ID, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		t, err = a.insertTenant(ctx, tx, by, t)
		return err
	})
	return t, err
}

// CreateTenantIn is CreateTenant in a transaction of the platform.
func (a *App) CreateTenantIn(ctx context.Context, tx pg.Tx, by domain.Origin, slug string, in domain.TenantPatch) (domain.Tenant, error) {
	t, err := a.newTenant(slug, in)
	if err != nil {
		return domain.Tenant{}, err
	}
	err = pg.As(ctx, tx, caller.FromContext(scope(ctx, t.ID, caller.Live)), func(ctx context.Context, tx pg.Tx) error {
		t, err = a.insertTenant(ctx, tx, by, t)
		return err
	})
	return t, err
}

// newTenant returns a checked tenant.
func (a *App) newTenant(slug string, in domain.TenantPatch) (domain.Tenant, error) {
	t := domain.Tenant{
		ID: ids.New[ids.TenantPrefix](), Slug: slug, Policy: domain.DefaultPolicy(), Invoicing: domain.DefaultInvoicing(),
		Limits: domain.Limits{Caps: map[string]int{}}, State: domain.State{Status: domain.TenantActive}, Version: 1,
	}.Apply(in)
	return t, t.Check()
}

func (a *App) insertTenant(ctx context.Context, tx pg.Tx, by domain.Origin, t domain.Tenant) (domain.Tenant, error) {
	created, err := store.InsertTenant(ctx, tx, t)
	if err != nil {
		return domain.Tenant{}, err
	}
	return created, a.audit(ctx, tx, by, change{domain.TenantCreated, created.ID.String(), nil, view.CreatedTenant(created)})
}

// UpdateTenant changes the given settings. The gateways receive the change through Redis, the services through an event. A change
// without an effect creates no version, no event, and no audit record. published is false if Redis has not received the change.
func (a *App) UpdateTenant(
	ctx context.Context, by domain.Origin, id ids.Tenant, in domain.TenantPatch,
) (t domain.Tenant, published bool, err error) {
	return a.changeTenant(ctx, by, id, tenantChange{domain.TenantUpdated, func(old domain.Tenant) (domain.Tenant, error) { return old.Apply(in), nil }})
}

// ActOnTenant suspends, resumes, closes or reopens a tenant. Otherwise it works like UpdateTenant: gateways apply the new state to the next request.
func (a *App) ActOnTenant(
	ctx context.Context, by domain.Origin, id ids.Tenant, action domain.TenantAction, reason string,
) (t domain.Tenant, published bool, err error) {
	return a.changeTenant(ctx, by, id, a.action(by, action, reason))
}

func (a *App) action(by domain.Origin, action domain.TenantAction, reason string) tenantChange {
	return tenantChange{action.Audited(), func(old domain.Tenant) (domain.Tenant, error) {
		return old.Act(domain.StatusChange{Action: action, Reason: reason, By: by, At: a.now(), Closing: a.ClosingPeriod})
	}}
}

// UpdateTenantIn is UpdateTenant in a transaction of the platform, for a tenant of the version that match expects. The caller must
// publish the invalidations afterwards.
func (a *App) UpdateTenantIn(
	ctx context.Context, tx pg.Tx, by domain.Origin, id ids.Tenant, in domain.TenantPatch, match patch.Precondition,
) (domain.Tenant, error) {
	update := tenantChange{domain.TenantUpdated, func(old domain.Tenant) (domain.Tenant, error) { return old.Apply(in), nil }}
	return a.changeTenantAs(ctx, tx, by, id, update.expecting(match))
}

// ActOnTenantIn is ActOnTenant like UpdateTenantIn.
func (a *App) ActOnTenantIn(
	ctx context.Context, tx pg.Tx, by domain.Origin, id ids.Tenant, c TenantAct, match patch.Precondition,
) (domain.Tenant, error) {
	return a.changeTenantAs(ctx, tx, by, id, a.action(by, c.Action, c.Reason).expecting(match))
}

// expecting returns the change for a tenant of the version that match expects.
func (c tenantChange) expecting(match patch.Precondition) tenantChange {
	return tenantChange{c.action, func(old domain.Tenant) (domain.Tenant, error) {
		if err := match.Check(old.Version); err != nil {
			return domain.Tenant{}, err
		}
		return c.apply(old)
	}}
}

// TenantAct is an action on a tenant with its reason.
type TenantAct struct {
	Action domain.TenantAction
	Reason string
}

// changeTenantAs makes a change in a transaction of the platform.
func (a *App) changeTenantAs(ctx context.Context, tx pg.Tx, by domain.Origin, id ids.Tenant, c tenantChange) (t domain.Tenant, err error) {
	err = pg.As(ctx, tx, caller.FromContext(scope(ctx, id, caller.Live)), func(ctx context.Context, tx pg.Tx) error {
		t, _, err = a.changeTenantIn(ctx, tx, by, c)
		return err
	})
	return t, err
}

// SetLimits sets limits of a tenant. The gateways apply them with the next request of each credential. Otherwise it works like UpdateTenant.
func (a *App) SetLimits(
	ctx context.Context, by domain.Origin, id ids.Tenant, in domain.LimitsPatch,
) (t domain.Tenant, published bool, err error) {
	return a.changeTenant(ctx, by, id, setLimits(in))
}

// SetLimitsIn is SetLimits like UpdateTenantIn.
func (a *App) SetLimitsIn(
	ctx context.Context, tx pg.Tx, by domain.Origin, id ids.Tenant, in domain.LimitsPatch, match patch.Precondition,
) (domain.Tenant, error) {
	return a.changeTenantAs(ctx, tx, by, id, setLimits(in).expecting(match))
}

func setLimits(in domain.LimitsPatch) tenantChange {
	return tenantChange{domain.TenantUpdated, func(old domain.Tenant) (domain.Tenant, error) {
		old.Limits = old.Limits.Apply(in)
		return old, old.Limits.Check()
	}}
}

// SetLogo sets a tenant's logo, or removes it for the zero Logo. Otherwise it works like UpdateTenant.
func (a *App) SetLogo(ctx context.Context, by domain.Origin, id ids.Tenant, l domain.Logo) (t domain.Tenant, published bool, err error) {
	return a.changeTenant(ctx, by, id, tenantChange{domain.TenantUpdated, func(old domain.Tenant) (domain.Tenant, error) { return old.WithLogo(l), nil }})
}

// SetClock freezes a tenant's test clock at a time that is not before its effective one, or returns it to real time for nil.
// Otherwise it works like UpdateTenant.
func (a *App) SetClock(
	ctx context.Context, by domain.Origin, id ids.Tenant, at *time.Time,
) (t domain.Tenant, published bool, err error) {
	return a.changeTenant(ctx, by, id, tenantChange{domain.TenantUpdated, func(old domain.Tenant) (domain.Tenant, error) {
		if at == nil {
			return old.Unfrozen(), nil
		}
		return old.Frozen(at.UTC().Truncate(time.Microsecond), a.now())
	}})
}

// tenantChange is a change of a tenant, with its action in the audit log.
type tenantChange struct {
	action string
	apply  func(old domain.Tenant) (domain.Tenant, error)
}

// changeTenant makes a change in a transaction and publishes it after the commit.
func (a *App) changeTenant(
	ctx context.Context, by domain.Origin, id ids.Tenant, c tenantChange,
) (t domain.Tenant, published bool, err error) {
	changed := false
	err = a.DB.Tx(scope(ctx, id, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		t, changed, err = a.changeTenantIn(ctx, tx, by, c)
		return err
	})
	if err != nil || !changed {
		return t, true, err
	}
	return t, a.publish(ctx, ids.Tenant{}), nil // the grants of its apps belong to many tenants
}

// changeTenantIn makes a change in a transaction of the tenant. The caller must publish the invalidations afterwards.
func (a *App) changeTenantIn(ctx context.Context, tx pg.Tx, by domain.Origin, c tenantChange) (t domain.Tenant, changed bool, err error) {
	old, err := store.TenantForUpdate(ctx, tx)
	if err != nil {
		return domain.Tenant{}, false, err
	}
	if t, err = c.apply(old); err != nil || t.Equal(old) {
		return t, false, err
	}
	t, err = a.writeTenant(ctx, tx, by, c.action, old, t)
	return t, true, err
}

// writeTenant writes a changed tenant, its event, its audit record and the invalidations of its keys.
func (a *App) writeTenant(ctx context.Context, tx pg.Tx, by domain.Origin, action string, old, updated domain.Tenant) (domain.Tenant, error) {
	if err := updated.Check(); err != nil {
		return domain.Tenant{}, err
	}
	t, err := store.UpdateTenant(ctx, tx, updated)
	if err != nil {
		return domain.Tenant{}, err
	}
	if err := store.InvalidateTenantKeys(ctx, tx); err != nil {
		return domain.Tenant{}, err
	}
	if t.Status != old.Status { // its apps act for other tenants only while it is active
		if err := store.InvalidatePublishedApps(ctx, tx); err != nil {
			return domain.Tenant{}, err
		}
	}
	body, err := contract.Encode(view.InternalTenant(t))
	if err != nil {
		return domain.Tenant{}, err
	}
	if err := outbox.Emit(ctx, tx, a.Wake, tenantUpdated(t, body)); err != nil {
		return domain.Tenant{}, err
	}
	return t, a.audit(ctx, tx, by, change{action, t.ID.String(), view.AuditedTenant(old), view.ChangedTenant(old, t)})
}

// TenantPage returns at most limit of the tenants that match the filter, and whether there are more.
func (a *App) TenantPage(ctx context.Context, f store.TenantFilter, limit int) (list []domain.Tenant, more bool, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		list, err = store.TenantPage(ctx, tx, f, limit+1)
		return err
	})
	more = len(list) > limit
	return list[:min(len(list), limit)], more, err
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
