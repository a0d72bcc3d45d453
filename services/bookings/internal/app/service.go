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

// CreateService makes a service.
func (a *Catalogue) CreateService(ctx context.Context, tx pg.Tx, in domain.ServicePatch) (domain.Service, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.Service{}, err
	}
	s, err := domain.NewService().Apply(in)
	if err != nil {
		return domain.Service{}, err
	}
	if err := validateService(ctx, tx, &s); err != nil {
		return domain.Service{}, err
	}
	if err := checkRoom(ctx, tx, limit.Services, store.CountServices, s.Active); err != nil {
		return domain.Service{}, err
	}
	return a.saveService(ctx, tx, nil, s)
}

// UpdateService changes the given fields. A change that shows nowhere makes no new version.
func (a *Catalogue) UpdateService(ctx context.Context, tx pg.Tx, id domain.ServiceID, in domain.ServicePatch, match patch.Precondition) (domain.Service, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.Service{}, err
	}
	current, err := store.Service(ctx, tx, id)
	if err != nil {
		return domain.Service{}, err
	}
	wanted, err := current.Apply(in)
	if err != nil {
		return domain.Service{}, err
	}
	if err := validateService(ctx, tx, &wanted); err != nil {
		return domain.Service{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.Service{}, err
	}
	same, err := contract.SameBody(view.Service(current, mode(ctx)), view.Service(wanted, mode(ctx)))
	if err != nil || same {
		return current, err
	}
	if wanted.Active != current.Active {
		if err := checkRoom(ctx, tx, limit.Services, store.CountServices, wanted.Active); err != nil {
			return domain.Service{}, err
		}
	}
	return a.saveService(ctx, tx, &current, wanted)
}

// validateService returns the 422 of units that the caller does not have.
func validateService(ctx context.Context, q pg.Q, s *domain.Service) error {
	return checkExist(ctx, q, listed("unit_ids"), "No such unit.", &s.UnitIDs, store.KnownUnits)
}

func (a *Catalogue) saveService(ctx context.Context, tx pg.Tx, before *domain.Service, s domain.Service) (domain.Service, error) {
	linked, err := store.PutService(ctx, tx, s)
	if err != nil {
		return domain.Service{}, err
	}
	if s, err = store.Service(ctx, tx, s.ID); err != nil {
		return domain.Service{}, err
	}
	units, err := unlessEmpty(ctx, tx, linked, store.UnitsByID)
	if err != nil {
		return domain.Service{}, err
	}
	if err := a.serviceUpdated(ctx, tx, before, s); err != nil {
		return domain.Service{}, err
	}
	return s, each(units, func(u domain.Unit) error {
		was := u
		was.ServiceIDs = toggled(u.ServiceIDs, s.ID)
		return a.unitUpdated(ctx, tx, &was, u)
	})
}
