package app

import (
	"context"

	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *Catalogue) services() kind[domain.ServiceID, domain.Service, domain.ServicePatch, api.Service] {
	return kind[domain.ServiceID, domain.Service, domain.ServicePatch, api.Service]{
		apply: func(_ context.Context, s domain.Service, in domain.ServicePatch) (domain.Service, error) {
			return s.Apply(in)
		},
		validate: validateService, load: store.Service, save: a.saveService, show: view.Service,
		version: func(s domain.Service) int64 { return s.Version },
		active:  func(s domain.Service) bool { return s.Active },
		caps:    limit.Services, count: store.CountServices,
	}
}

// CreateService creates a service.
func (a *Catalogue) CreateService(ctx context.Context, tx pg.Tx, in domain.ServicePatch) (domain.Service, error) {
	return a.services().create(ctx, tx, domain.NewService(), in)
}

// UpdateService changes the given fields. A change without a visible effect does not create a new version.
func (a *Catalogue) UpdateService(
	ctx context.Context, tx pg.Tx, id domain.ServiceID, in domain.ServicePatch, match patch.Precondition,
) (domain.Service, error) {
	return a.services().update(ctx, tx, id, in, match)
}

// validateService returns the 422 for units that the caller does not have.
func validateService(ctx context.Context, q pg.Q, s *domain.Service) error {
	return checkExist(ctx, q, listed("unit_ids"), "Unit not found.", &s.UnitIDs, store.KnownUnits)
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
