package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Catalogue contains the use cases of services, units, packages, holiday rules, and closures. Each write holds the lock of the caller's
// catalogue and returns the row as it is read after the write. It creates an internal event for each row that it changes. There are
// no public events about the catalogue.
type Catalogue struct {
	// Bookings expires the holds of a unit that have lapsed.
	Bookings *Bookings
	// Wake notifies the relay that an event was committed.
	Wake func()
	// Now returns real time. Only closures depend on the time.
	Now func() time.Time
}

// emit creates the events of new rows that the transaction wrote.
func (a *Catalogue) emit(ctx context.Context, tx pg.Tx, c store.Catalogue) error {
	return errors.Join(
		each(c.Services, func(s domain.Service) error { return a.serviceUpdated(ctx, tx, nil, s) }),
		each(c.Units, func(u domain.Unit) error { return a.unitUpdated(ctx, tx, nil, u) }),
		each(c.Packages, func(p domain.Package) error { return a.packageUpdated(ctx, tx, nil, p) }),
		each(c.Rules, func(r domain.HolidayRule) error { return a.holidayRuleUpdated(ctx, tx, nil, r) }),
	)
}

func each[T any](list []T, do func(T) error) error {
	for _, v := range list {
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

// The events of one row. before is the row before the write, or nil for a new one.

func (a *Catalogue) serviceUpdated(ctx context.Context, tx pg.Tx, before *domain.Service, s domain.Service) error {
	return updated(ctx, tx, a.Wake, view.Service, before, s, catalogueUpdated("service.updated", s.ID.String(), s.Version))
}

func (a *Catalogue) unitUpdated(ctx context.Context, tx pg.Tx, before *domain.Unit, u domain.Unit) error {
	return updated(ctx, tx, a.Wake, view.Unit, before, u, catalogueUpdated("unit.updated", u.ID.String(), u.Version))
}

func (a *Catalogue) packageUpdated(ctx context.Context, tx pg.Tx, before *domain.Package, p domain.Package) error {
	return updated(ctx, tx, a.Wake, view.Package, before, p, catalogueUpdated("package.updated", p.ID.String(), p.Version))
}

func (a *Catalogue) holidayRuleUpdated(ctx context.Context, tx pg.Tx, before *domain.HolidayRule, r domain.HolidayRule) error {
	return updated(ctx, tx, a.Wake, view.HolidayRule, before, r, catalogueUpdated("holiday_rule.updated", r.ID.String(), r.Version))
}

// updated adds the bodies to an event and emits it.
func updated[T, V any](
	ctx context.Context, tx pg.Tx, wake func(), show func(T, api.Mode) V, before *T, after T, e outbox.Event,
) (err error) {
	if e.Object, err = outbox.Body(ctx, show, after); err != nil {
		return err
	}
	if before != nil {
		was, err := outbox.Body(ctx, show, *before)
		if err != nil {
			return err
		}
		e.Previous = outbox.Diff(was, e.Object)
	}
	return outbox.Emit(ctx, tx, wake, e)
}

// toggled returns a list of links without id, or with id if it was missing. This is the list before the link to id changed.
func toggled[P ids.Prefix](list []ids.ID[P], id ids.ID[P]) []ids.ID[P] {
	if i := slices.Index(list, id); i >= 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	out := append(slices.Clone(list), id)
	slices.SortFunc(out, domain.CompareIDs[P])
	return out
}

// unlessEmpty reads the rows of a list. It skips the statement for an empty list.
func unlessEmpty[P ids.Prefix, T any](
	ctx context.Context, q pg.Q, list []ids.ID[P], read func(context.Context, pg.Q, []ids.ID[P]) ([]T, error),
) ([]T, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return read(ctx, q, list)
}

func mode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }

func listed(name string) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s.%d", name, i) }
}

// checkExist returns the 422 for the ids that the caller does not have. It sorts the list in the order in which it will be read.
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
