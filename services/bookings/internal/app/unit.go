package app

import (
	"context"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// CreateUnit makes a unit.
func (a *Catalogue) CreateUnit(ctx context.Context, tx pg.Tx, in domain.UnitPatch) (domain.Unit, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.Unit{}, err
	}
	u, err := domain.NewUnit().Apply(in)
	if err != nil {
		return domain.Unit{}, err
	}
	if err := validateUnit(ctx, tx, &u); err != nil {
		return domain.Unit{}, err
	}
	if err := checkRoom(ctx, tx, limit.Units, store.CountUnits, u.InUse()); err != nil {
		return domain.Unit{}, err
	}
	return a.saveUnit(ctx, tx, nil, u)
}

// UpdateUnit changes the given fields. A change that shows nowhere makes no new version.
func (a *Catalogue) UpdateUnit(ctx context.Context, tx pg.Tx, id domain.UnitID, in domain.UnitPatch, match patch.Precondition) (domain.Unit, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.Unit{}, err
	}
	current, err := store.Unit(ctx, tx, id)
	if err != nil {
		return domain.Unit{}, err
	}
	wanted, err := current.Apply(in)
	if err != nil {
		return domain.Unit{}, err
	}
	if err := validateUnit(ctx, tx, &wanted); err != nil {
		return domain.Unit{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.Unit{}, err
	}
	same, err := contract.SameBody(view.Unit(current, mode(ctx)), view.Unit(wanted, mode(ctx)))
	if err != nil || same {
		return current, err
	}
	if wanted.InUse() != current.InUse() {
		if err := checkRoom(ctx, tx, limit.Units, store.CountUnits, wanted.InUse()); err != nil {
			return domain.Unit{}, err
		}
	}
	return a.saveUnit(ctx, tx, &current, wanted)
}

// validateUnit returns the 422 of services that the caller does not have.
func validateUnit(ctx context.Context, q pg.Q, u *domain.Unit) error {
	return checkExist(ctx, q, listed("service_ids"), "No such service.", &u.ServiceIDs, store.KnownServices)
}

func (a *Catalogue) saveUnit(ctx context.Context, tx pg.Tx, before *domain.Unit, u domain.Unit) (domain.Unit, error) {
	linked, err := store.PutUnit(ctx, tx, u)
	if err != nil {
		return domain.Unit{}, err
	}
	if u, err = store.Unit(ctx, tx, u.ID); err != nil {
		return domain.Unit{}, err
	}
	services, err := unlessEmpty(ctx, tx, linked, store.ServicesByID)
	if err != nil {
		return domain.Unit{}, err
	}
	err = each(services, func(s domain.Service) error {
		was := s
		was.UnitIDs = toggled(s.UnitIDs, u.ID)
		return a.serviceUpdated(ctx, tx, &was, s)
	})
	if err != nil {
		return domain.Unit{}, err
	}
	return u, a.unitUpdated(ctx, tx, before, u)
}
