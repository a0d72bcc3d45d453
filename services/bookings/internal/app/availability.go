package app

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/store"
)

// Days returns what is offered on the days of a query, whose dates are parsed in the caller's time zone.
func (a *Bookings) Days(ctx context.Context, q availability.Query) ([]availability.Day, error) {
	op, err := a.operator(ctx)
	if err != nil {
		return nil, err
	}
	catalogue, err := store.Offered(ctx, a.DB, q.Unit, q.Window(op.Loc))
	if err != nil {
		return nil, err
	}
	plan, err := availability.NewPlan(ctx, q, catalogue, op)
	if err != nil {
		return nil, err
	}
	claims, err := store.Claims(ctx, a.DB.Read(ctx), q.Window(op.Loc), plan.Units(), op.Now)
	if err != nil {
		return nil, err
	}
	return plan.Days(ctx, claims)
}

// Explain returns the reason why the unit cannot be booked from start, or availability.Free, and the seats of its slot. A unit that the
// caller does not have is a 422 on unit_id.
func (a *Bookings) Explain(ctx context.Context, id domain.UnitID, start availability.Start) (r availability.Reason, seats availability.Seats, err error) {
	op, err := a.operator(ctx)
	if err != nil {
		return "", seats, err
	}
	catalogue, err := store.Offered(ctx, a.DB, &id, start.Window(op.Loc))
	if err != nil {
		return "", seats, err
	}
	if id.IsZero() || len(catalogue.Units) == 0 {
		return "", seats, apperr.Field("unit_id", "Unit not found.")
	}
	claims, err := store.Claims(ctx, a.DB.Read(ctx), start.Window(op.Loc), []domain.UnitID{id}, op.Now)
	if err != nil {
		return "", seats, err
	}
	r, seats = availability.Explain(catalogue.Units[0], catalogue, start, claims, op)
	return r, seats, nil
}

// operator returns the operator whose time zone and policy apply to a response.
func (a *Bookings) operator(ctx context.Context) (availability.Operator, error) {
	loc, err := civil.Location(caller.FromContext(ctx).Timezone)
	if err != nil {
		return availability.Operator{}, err
	}
	tenant, err := a.Tenants.Tenant(ctx)
	return availability.Operator{Loc: loc, Policy: tenant.Policy, Now: a.now(ctx)}, err
}
