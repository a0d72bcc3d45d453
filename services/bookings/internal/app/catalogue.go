package app

import (
	"context"
	"fmt"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Catalogue are the verbs of services, units and packages. Each write holds the lock of the caller's catalogue, returns the
// row as it is read after the write, and makes an internal event of each row that it changes: no public type is about the
// catalogue. Holiday rules have none.
type Catalogue struct {
	// Wake tells the relay that an event has been committed.
	Wake func()
}

// emit makes the events of rows that the transaction has written.
func (a *Catalogue) emit(ctx context.Context, tx pg.Tx, c store.Catalogue) error {
	for _, s := range c.Services {
		if err := a.updated(ctx, tx, "service.updated", s.ID.String(), s.Version, view.Service(s, mode(ctx))); err != nil {
			return err
		}
	}
	for _, u := range c.Units {
		if err := a.updated(ctx, tx, "unit.updated", u.ID.String(), u.Version, view.Unit(u, mode(ctx))); err != nil {
			return err
		}
	}
	for _, p := range c.Packages {
		if err := a.updated(ctx, tx, "package.updated", p.ID.String(), p.Version, view.Package(p, mode(ctx))); err != nil {
			return err
		}
	}
	return nil
}

func (a *Catalogue) updated(ctx context.Context, tx pg.Tx, kind, id string, version int64, shown any) error {
	body, err := contract.Encode(shown)
	if err != nil {
		return err
	}
	return emit(ctx, tx, a.Wake, catalogueUpdated(kind, id, version, body))
}

// unlessEmpty reads the rows of a list, and spares the statement for none.
func unlessEmpty[P ids.Prefix, T any](
	ctx context.Context, q pg.Q, list []ids.ID[P], read func(context.Context, pg.Q, []ids.ID[P]) ([]T, error),
) ([]T, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return read(ctx, q, list)
}

// checkRoom returns the 422 when one more row, active or inactive, would exceed its cap. It counts under the catalogue's
// lock.
func checkRoom(
	ctx context.Context, tx pg.Tx, caps limit.Caps, count func(ctx context.Context, tx pg.Tx) (limit.Count, error), active bool,
) error {
	there, err := count(ctx, tx)
	if err != nil {
		return err
	}
	return caps.Room(there, active)
}

func mode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }

func listed(name string) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s.%d", name, i) }
}

// checkExist returns the 422 of the ids that the caller does not have, and sorts the list as it is read back.
func checkExist[P ids.Prefix](
	ctx context.Context, q pg.Q, field func(i int) string, message string, list *[]ids.ID[P],
	known func(context.Context, pg.Q, []ids.ID[P]) ([]ids.ID[P], error),
) error {
	have, err := known(ctx, q, *list)
	if err != nil {
		return err
	}
	var failed []apperr.FieldError
	for i, id := range *list {
		if !slices.Contains(have, id) {
			failed = append(failed, apperr.FieldError{Field: field(i), Message: message})
		}
	}
	if len(failed) > 0 {
		return apperr.Fields(failed)
	}
	sorted := slices.Clone(*list)
	slices.SortFunc(sorted, domain.CompareIDs[P])
	*list = slices.Compact(sorted)
	return nil
}
