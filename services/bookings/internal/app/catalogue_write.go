package app

import (
	"context"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
)

// kind contains what create and update need for one kind of row in the catalogue.
type kind[ID, T, In, V any] struct {
	apply    func(ctx context.Context, v T, in In) (T, error)
	validate func(ctx context.Context, q pg.Q, v *T) error // returns the 422 for what is incompatible or does not exist
	load     func(ctx context.Context, q pg.Q, id ID) (T, error)
	save     func(ctx context.Context, tx pg.Tx, before *T, v T) (T, error) // writes the row and its events; before is nil for a new row
	show     func(v T, mode api.Mode) V
	version  func(v T) int64
	active   func(v T) bool
	caps     limit.Caps // of active and inactive rows
	count    func(ctx context.Context, tx pg.Tx) (limit.Count, error)
}

// create creates a row from a blank one.
func (k kind[ID, T, In, V]) create(ctx context.Context, tx pg.Tx, blank T, in In) (none T, err error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return none, err
	}
	v, err := k.apply(ctx, blank, in)
	if err != nil {
		return none, err
	}
	if err := k.validate(ctx, tx, &v); err != nil {
		return none, err
	}
	if err := k.checkRoom(ctx, tx, v); err != nil {
		return none, err
	}
	return k.save(ctx, tx, nil, v)
}

// update changes the given fields of a row. A change without a visible effect does not create a new version.
func (k kind[ID, T, In, V]) update(ctx context.Context, tx pg.Tx, id ID, in In, match patch.Precondition) (none T, err error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return none, err
	}
	current, err := k.load(ctx, tx, id)
	if err != nil {
		return none, err
	}
	changed, err := k.apply(ctx, current, in)
	if err != nil {
		return none, err
	}
	if err := k.validate(ctx, tx, &changed); err != nil {
		return none, err
	}
	if err := match.Check(k.version(current)); err != nil {
		return none, err
	}
	same, err := contract.SameBody(k.show(current, mode(ctx)), k.show(changed, mode(ctx)))
	if err != nil || same {
		return current, err
	}
	if k.active(changed) != k.active(current) {
		if err := k.checkRoom(ctx, tx, changed); err != nil {
			return none, err
		}
	}
	return k.save(ctx, tx, &current, changed)
}

// checkRoom returns the 422 if one more active or inactive row would exceed its cap. It counts under the catalogue's lock.
func (k kind[ID, T, In, V]) checkRoom(ctx context.Context, tx pg.Tx, v T) error {
	there, err := k.count(ctx, tx)
	if err != nil {
		return err
	}
	return k.caps.For(caller.FromContext(ctx).Caps).Room(there, k.active(v))
}
