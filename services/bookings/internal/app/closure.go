package app

import (
	"context"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *Catalogue) closures(ctx context.Context) kind[domain.ClosureID, domain.Closure, domain.ClosurePatch, api.Closure] {
	now := a.now(ctx)
	return kind[domain.ClosureID, domain.Closure, domain.ClosurePatch, api.Closure]{
		apply: func(_ context.Context, c domain.Closure, in domain.ClosurePatch) (domain.Closure, error) {
			return c.Apply(in)
		},
		validate: validateClosure, load: a.Closure, save: a.saveClosure, show: view.Closure,
		version: func(c domain.Closure) int64 { return c.Version },
		active:  func(c domain.Closure) bool { return !c.Ended(now) },
		caps:    limit.Closures,
		count: func(ctx context.Context, tx pg.Tx) (limit.Count, error) {
			n, err := store.CountClosures(ctx, tx, now)
			if err == nil { // closures also end by time, so each new one needs room among those that have ended
				err = limit.Closures.Inactive.Room(n.Inactive)
			}
			return n, err
		},
	}
}

// now returns the caller's time, which a test clock can set.
func (a *Catalogue) now(ctx context.Context) time.Time { return caller.FromContext(ctx).Now(a.Now()) }

// Closure reads a closure with the bookings that overlap it now, or returns domain.ErrClosureNotFound.
func (a *Catalogue) Closure(ctx context.Context, q pg.Q, id domain.ClosureID) (domain.Closure, error) {
	c, err := store.Closure(ctx, q, id)
	if err != nil {
		return domain.Closure{}, err
	}
	c.Conflicts, err = store.Conflicts(ctx, q, c, a.now(ctx))
	return c, err
}

// CreateClosure creates a closure. From its commit on, no booking can be made in it. It returns those that already exist.
func (a *Catalogue) CreateClosure(ctx context.Context, tx pg.Tx, in domain.ClosurePatch) (domain.Closure, error) {
	return a.closures(ctx).create(ctx, tx, domain.NewClosure(caller.FromContext(ctx).Timezone), in)
}

// UpdateClosure changes the given fields. A change without a visible effect does not create a new version.
func (a *Catalogue) UpdateClosure(
	ctx context.Context, tx pg.Tx, id domain.ClosureID, in domain.ClosurePatch, match patch.Precondition,
) (domain.Closure, error) {
	return a.closures(ctx).update(ctx, tx, id, in, match)
}

// DeleteClosure deletes a closure. Its units can be booked when the transaction ends.
func (a *Catalogue) DeleteClosure(ctx context.Context, tx pg.Tx, id domain.ClosureID, match patch.Precondition) error {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return err
	}
	c, err := store.Closure(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := match.Check(c.Version); err != nil {
		return err
	}
	if err := store.DeleteClosure(ctx, tx, id); err != nil {
		return err
	}
	return updated(ctx, tx, a.Wake, view.Closure, nil, c, closureDeleted(c))
}

// validateClosure returns the 422 for units that the caller does not have.
func validateClosure(ctx context.Context, q pg.Q, c *domain.Closure) error {
	if c.UnitIDs == nil {
		return nil
	}
	return checkExist(ctx, q, listed("unit_ids"), "Unit not found.", &c.UnitIDs, store.KnownUnits)
}

// saveClosure locks the units before it writes the closure, and reads the conflicts after both. The catalogue's lock keeps units from
// being added meanwhile.
func (a *Catalogue) saveClosure(ctx context.Context, tx pg.Tx, before *domain.Closure, c domain.Closure) (domain.Closure, error) {
	if err := store.LockClosed(ctx, tx, c.UnitIDs); err != nil {
		return domain.Closure{}, err
	}
	if err := store.PutClosure(ctx, tx, c); err != nil {
		return domain.Closure{}, err
	}
	c, err := a.Closure(ctx, tx, c.ID)
	if err != nil {
		return domain.Closure{}, err
	}
	return c, a.closureUpdated(ctx, tx, before, c)
}

// closureUpdated emits the event of a new or changed closure, without its conflicts.
func (a *Catalogue) closureUpdated(ctx context.Context, tx pg.Tx, before *domain.Closure, c domain.Closure) error {
	if before != nil {
		before = new(*before)
		before.Conflicts = nil
	}
	c.Conflicts = nil
	return updated(ctx, tx, a.Wake, view.Closure, before, c, catalogueUpdated("closure.updated", c.ID.String(), c.Version))
}
