package app

import (
	"context"
	"time"

	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// Reprice takes a new price snapshot, whatever has been paid already.
func (a *Bookings) Reprice(ctx context.Context, transact pg.Transact[domain.Booking], id domain.BookingID, match patch.Precondition) error {
	return a.run(ctx, transact, update{id: id, match: match, reprice: true})
}

// repriced takes the price of today's terms. The unit is not asked for: it is no part of the price, and
// locking it after the booking would turn the order round.
func (a *Bookings) repriced(ctx context.Context, tx pg.Tx, current domain.Booking, now time.Time) (domain.Booking, error) {
	refs, _, err := store.Refs(ctx, tx, domain.Links{Package: current.PackageID}, now)
	if err != nil {
		return domain.Booking{}, err
	}
	return current.Reprice(refs)
}
