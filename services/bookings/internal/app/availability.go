package app

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/offer"
	"holdfast.dev/services/bookings/internal/store"
)

// Days answers what is offered on the days of a query, whose dates are parsed in the caller's timezone.
func (a *Bookings) Days(ctx context.Context, q offer.Query) ([]offer.Day, error) {
	op, err := a.operator(ctx)
	if err != nil {
		return nil, err
	}
	catalogue, claims, err := store.Offered(ctx, a.DB, q.Window(op.Loc), q.Unit)
	if err != nil {
		return nil, err
	}
	return offer.Days(q, catalogue, claims, op)
}

// Explain says why the unit cannot be booked from start on, or offer.Free. A unit that the caller does not
// have is a 422 on unit_id.
func (a *Bookings) Explain(ctx context.Context, id domain.UnitID, start offer.Start) (offer.Reason, error) {
	op, err := a.operator(ctx)
	if err != nil {
		return "", err
	}
	catalogue, claims, err := store.Offered(ctx, a.DB, start.Window(op.Loc), &id)
	if err != nil {
		return "", err
	}
	if id.IsZero() || len(catalogue.Units) == 0 {
		return "", apperr.Field("unit_id", "No such unit.")
	}
	return offer.Explain(catalogue.Units[0], catalogue.Services, start, claims, op), nil
}

// operator is whose time and policy an answer goes by.
func (a *Bookings) operator(ctx context.Context) (offer.Operator, error) {
	loc, err := domain.Location(caller.Must(ctx).Timezone)
	if err != nil {
		return offer.Operator{}, err
	}
	policy, err := a.Tenants.Policy(ctx)
	return offer.Operator{Loc: loc, Policy: policy, Now: a.now(ctx)}, err
}
