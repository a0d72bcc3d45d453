package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// errMoved says that the booking changed its unit between the look and the lock: the units must be locked anew.
var errMoved = errors.New("booking moved to another unit")

// maxMoves is how often a write follows a booking that others keep moving.
const maxMoves = 5

// Update changes the given fields. A change that shows nowhere makes no new version and no event.
func (a *Bookings) Update(
	ctx context.Context, transact pg.Transact[domain.Booking], id domain.BookingID, in domain.BookingInput, match patch.Precondition,
) error {
	return a.run(ctx, transact, update{id: id, input: in, match: match})
}

// Cancellation is what a client gives of a cancellation.
type Cancellation struct{ Reason *string }

// Cancel cancels the booking and gives its unit free; cancelling a cancelled one changes nothing.
func (a *Bookings) Cancel(
	ctx context.Context, transact pg.Transact[domain.Booking], id domain.BookingID, in Cancellation, match patch.Precondition,
) error {
	cancelled := domain.BookingInput{Status: patch.Value(domain.Cancelled)}
	return a.run(ctx, transact, update{id: id, input: cancelled, reason: in.Reason, match: match})
}

// run asks the other services for what the change needs, and makes it in its transaction.
func (a *Bookings) run(ctx context.Context, transact pg.Transact[domain.Booking], u update) error {
	if u.input.HasTime() {
		u.prefetched = a.prefetch(ctx)
	}
	err := errMoved
	for try := 0; errors.Is(err, errMoved) && try < maxMoves; try++ {
		err = a.withCustomer(ctx, func(fetched bool) error {
			u.fetched = fetched
			return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Booking, error) { return a.update(ctx, tx, u) })
		})
	}
	if errors.Is(err, errMoved) {
		return apperr.ErrUnavailable.WithCause(err)
	}
	return err
}

// update is one change of a booking on its way through its transaction.
type update struct {
	prefetched
	id      domain.BookingID
	input   domain.BookingInput
	reason  *string
	match   patch.Precondition
	reprice bool
}

// update locks units before the booking, in the order that creates use too, and both before any claim.
func (a *Bookings) update(ctx context.Context, tx pg.Tx, u update) (domain.Booking, error) {
	var units []domain.UnitID
	claims := u.input.HasSchedule() || u.input.Status.Given()
	if claims {
		var err error
		if units, err = store.LockUnits(ctx, tx, u.id, domain.Booking{}.Links(u.input).Unit); err != nil {
			return domain.Booking{}, err
		}
	}
	current, err := store.BookingForUpdate(ctx, tx, u.id)
	if err != nil {
		return domain.Booking{}, err
	}
	if claims && !current.UnitID.IsZero() && !slices.Contains(units, current.UnitID) {
		return domain.Booking{}, errMoved
	}
	if u.err != nil {
		return domain.Booking{}, u.err
	}
	now := a.now(ctx) // not before the locks: a hold may have run out while we waited, and somebody been told so
	if current.Lapsed(now) {
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return domain.Booking{}, err
		}
	}
	return a.change(ctx, tx, u, current, now)
}

// change checks the input in the contract's order (fields, If-Match, state), and writes what it comes to.
func (a *Bookings) change(ctx context.Context, tx pg.Tx, u update, current domain.Booking, now time.Time) (domain.Booking, error) {
	wanted, claim, err := a.reschedule(ctx, tx, u, current, now)
	if err != nil {
		return domain.Booking{}, err
	}
	if err := u.match.Check(current.Version); err != nil {
		return domain.Booking{}, err
	}
	if u.reprice {
		err = wanted.Repriceable()
	} else {
		wanted, err = wanted.ApplyStatus(u.input, u.reason, now)
	}
	if err != nil {
		return domain.Booking{}, err
	}
	previous, err := diff(ctx, current, wanted)
	if err != nil || string(previous) == "{}" {
		return current, err
	}
	return a.save(ctx, tx, wanted, claim, previous, now)
}

// reschedule applies time, links and guests, or a new price, and returns the claim they call for while the booking holds its
// unit; nil: the claim stays as it is.
func (a *Bookings) reschedule(ctx context.Context, tx pg.Tx, u update, current domain.Booking, now time.Time) (domain.Booking, *store.Claim, error) {
	if u.reprice {
		wanted, err := a.repriced(ctx, tx, current, now)
		return wanted, nil, err
	}
	if !u.input.HasSchedule() {
		return current, nil, nil
	}
	when, err := u.input.When(current.Loc)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	refs, _, err := a.refs(ctx, tx, current.Links(u.input), u.fetched, now)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	wanted, err := current.ApplySchedule(u.input, when, refs, u.policy, now)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	if wanted.KeepsSlot(current) {
		return wanted, nil, nil
	}
	return wanted, claimOf(wanted, refs.Service), nil
}

func (a *Bookings) save(ctx context.Context, tx pg.Tx, wanted domain.Booking, claim *store.Claim, previous json.RawMessage, now time.Time) (domain.Booking, error) {
	saved, err := store.UpdateBooking(ctx, tx, wanted)
	if err != nil {
		return domain.Booking{}, err
	}
	if err := a.reclaim(ctx, tx, saved, claim, now); err != nil {
		return domain.Booking{}, err
	}
	body, err := render(ctx, saved)
	if err != nil {
		return domain.Booking{}, err
	}
	return saved, a.emit(ctx, tx, bookingChanged(saved, body, previous))
}

// reclaim moves the claim in one statement, so that the booking holds either its old slot or its new one.
func (a *Bookings) reclaim(ctx context.Context, tx pg.Tx, b domain.Booking, claim *store.Claim, now time.Time) error {
	if !b.Status.Holds() || b.UnitID.IsZero() {
		return store.DeleteClaim(ctx, tx, b.ID)
	}
	if claim == nil {
		return nil
	}
	if err := a.expireOverlappingHolds(ctx, tx, *claim, now); err != nil {
		return err
	}
	return store.PutClaim(ctx, tx, *claim)
}

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
