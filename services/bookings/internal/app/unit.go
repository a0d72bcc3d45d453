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

func (a *Catalogue) units() kind[domain.UnitID, domain.Unit, domain.UnitPatch, api.Unit] {
	return kind[domain.UnitID, domain.Unit, domain.UnitPatch, api.Unit]{
		apply: func(_ context.Context, u domain.Unit, in domain.UnitPatch) (domain.Unit, error) {
			return u.Apply(in)
		},
		validate: validateUnit, load: store.Unit, save: a.saveUnit, show: view.Unit,
		version: func(u domain.Unit) int64 { return u.Version },
		active:  domain.Unit.InUse,
		caps:    limit.Units, count: store.CountUnits,
	}
}

// CreateUnit creates a unit.
func (a *Catalogue) CreateUnit(ctx context.Context, tx pg.Tx, in domain.UnitPatch) (domain.Unit, error) {
	return a.units().create(ctx, tx, domain.NewUnit(), in)
}

// UpdateUnit changes the given fields. A change without a visible effect does not create a new version.
func (a *Catalogue) UpdateUnit(
	ctx context.Context, tx pg.Tx, id domain.UnitID, in domain.UnitPatch, match patch.Precondition,
) (domain.Unit, error) {
	return a.units().update(ctx, tx, id, in, match)
}

// validateUnit returns the 422 for services that the caller does not have.
func validateUnit(ctx context.Context, q pg.Q, u *domain.Unit) error {
	return checkExist(ctx, q, listed("service_ids"), "Service not found.", &u.ServiceIDs, store.KnownServices)
}

func (a *Catalogue) saveUnit(ctx context.Context, tx pg.Tx, before *domain.Unit, u domain.Unit) (domain.Unit, error) {
	linked, err := store.PutUnit(ctx, tx, u)
	if err != nil {
		return domain.Unit{}, err
	}
	if before != nil {
		if err := a.resizeSessions(ctx, tx, *before, u); err != nil {
			return domain.Unit{}, err
		}
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

// centuries is a number of years after which no booking can be.
const centuries = 300

// resizeSessions changes the sessions of a unit with its capacity. It returns the 422 for a change that bookings from now on prevent. The
// unit is locked, because it was written.
func (a *Catalogue) resizeSessions(ctx context.Context, tx pg.Tx, before, u domain.Unit) error {
	resized := before.Shared() && u.Shared() && *before.Capacity != *u.Capacity
	if u.BookingMode == before.BookingMode && !resized {
		return nil
	}
	now := a.Bookings.now(ctx)
	everything := store.Claim{Unit: u.ID, From: now, To: now.AddDate(centuries, 0, 0)}
	if err := a.Bookings.expireOverlappingHolds(ctx, tx, everything, now); err != nil {
		return err
	}
	claimed, err := store.ClaimedFrom(ctx, tx, u.ID, now)
	if err != nil {
		return err
	}
	if err := u.Permits(before, claimed.Claims > 0, claimed.Seats, claimed.Whole); err != nil || !resized {
		return err
	}
	return store.SetSeats(ctx, tx, u.ID, *u.Capacity, now)
}
