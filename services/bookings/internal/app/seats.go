package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/store"
)

// offered returns the claim that a booking needs; nil means none. On a shared unit, the booking must name a slot that availability
// offers.
func offered(ctx context.Context, tx pg.Tx, b domain.Booking, refs domain.Refs) (*store.Claim, error) {
	claim := claimOf(b, refs)
	if !claim.Shared() {
		return claim, nil
	}
	var services []domain.Service
	if refs.Service == nil {
		var err error
		if services, err = store.ActiveServices(ctx, tx); err != nil {
			return nil, err
		}
	}
	if !availability.Offers(*refs.Unit, refs.Service, refs.Package, services, claim.Slot, b.Loc) {
		return nil, domain.ErrNotOffered
	}
	return claim, nil
}

// takeSeats makes a booking take the seats of a claim of a shared unit, or all of them. It does so for new bookings and for every
// change, after the overlapping holds that have lapsed have expired. The caller writes the booking. Its seats count from then on, and
// those that it had before are returned. If too few seats are left, the error contains their number.
//
// It locks the session of the slot after the units and the bookings.
func takeSeats(ctx context.Context, tx pg.Tx, b domain.Booking, c store.Claim) (domain.Booking, error) {
	session, err := store.SessionForUpdate(ctx, tx, c)
	if err != nil {
		return domain.Booking{}, err
	}
	switch {
	case session != nil && c.Seats == 0:
		return domain.Booking{}, domain.NoSeats(session.Left())
	case c.Seats == 0:
		return b, noneLeft(store.PutClaim(ctx, tx, c))
	case session == nil:
		return openSession(ctx, tx, b, c)
	}
	own := 0
	if session.ID == b.Session {
		own = b.Seats
	}
	if c.Seats > session.Left()+own {
		return domain.Booking{}, domain.NoSeats(session.Left())
	}
	b.Session, b.Seats = session.ID, c.Seats
	return b, nil
}

// openSession opens a session for the first booking of a slot. A booking that moves leaves its unit first, because it may overlap the
// slot.
func openSession(ctx context.Context, tx pg.Tx, b domain.Booking, c store.Claim) (domain.Booking, error) {
	if c.Seats > c.Capacity {
		return domain.Booking{}, domain.NoSeats(c.Capacity)
	}
	if !b.CreatedAt.IsZero() {
		if err := store.LeaveUnit(ctx, tx, b.ID); err != nil {
			return domain.Booking{}, err
		}
	}
	session, err := store.OpenSession(ctx, tx, c)
	if err != nil {
		return domain.Booking{}, noneLeft(err)
	}
	b.Session, b.Seats = session.ID, c.Seats
	return b, nil
}

// noneLeft adds to the error of a slot that another claim overlaps that none of its seats is left.
func noneLeft(err error) error {
	if errors.Is(err, domain.ErrSlotUnavailable) {
		return domain.NoSeats(0).WithCause(err)
	}
	return err
}
