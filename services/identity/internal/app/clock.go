package app

import (
	"context"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// SetClock freezes a tenant's test clock at a time that is not before its effective one, or with nil returns
// it to real time. Gateways and services learn of it as of any change of the tenant. The same state again
// leaves no trace. published is false while Redis has still to learn of it.
func (a *App) SetClock(ctx context.Context, by domain.Origin, id ids.Tenant, at *time.Time) (t domain.Tenant, published bool, err error) {
	ctx = scope(ctx, id, caller.Live)
	changed := false
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		old, err := store.TenantForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		if t = old.Thawed(); at != nil {
			if t, err = old.Frozen(at.UTC().Truncate(time.Microsecond), a.now()); err != nil {
				return err
			}
		}
		if changed = !t.SameClock(old); !changed {
			return nil
		}
		return a.writeTenant(ctx, tx, by, old, &t)
	})
	if err != nil || !changed {
		return t, true, err
	}
	return t, a.publish(ctx, id), nil
}
