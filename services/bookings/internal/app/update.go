package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// errMoved says that the booking changed its unit between the look and the lock: the units must be locked anew.
var errMoved = errors.New("booking moved to another unit")

// maxMoves is how often a write follows a booking that others keep moving.
const maxMoves = 5

// Update changes what is given. A change that nobody could see is none: no new version, no event.
func (a *Bookings) Update(ctx context.Context, id domain.BookingID, w domain.Wish, match httpx.Match) (idem.Reply, error) {
	return a.run(ctx, update{id: id, wish: w, match: match})
}

// Cancel cancels the booking and gives its unit free; cancelling a cancelled one changes nothing.
func (a *Bookings) Cancel(ctx context.Context, id domain.BookingID, reason *string, match httpx.Match) (idem.Reply, error) {
	cancelled := domain.Cancelled
	return a.run(ctx, update{id: id, wish: domain.Wish{Status: &cancelled}, reason: reason, match: match})
}

// run asks the other services for what the change needs, and makes it in its transaction.
func (a *Bookings) run(ctx context.Context, u update) (idem.Reply, error) {
	if u.wish.MovesTime() {
		u.known = a.prepare(ctx)
	}
	var reply idem.Reply
	err := errMoved
	for try := 0; errors.Is(err, errMoved) && try < maxMoves; try++ {
		reply, err = a.acquainted(ctx, func(met bool) (idem.Reply, error) {
			u.met = met
			return a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
				return a.update(ctx, tx, u)
			})
		})
	}
	if errors.Is(err, errMoved) {
		return idem.Reply{}, apperr.ErrUnavailable.With(err)
	}
	if errors.Is(err, domain.ErrBookingNotFound) {
		err = store.Missing(ctx, a.DB, func(ctx context.Context, q pg.Q) error {
			_, err := store.Booking(ctx, q, u.id)
			return err
		})
	}
	return reply, err
}

// update is one change of a booking on its way through its transaction.
type update struct {
	known
	id      domain.BookingID
	wish    domain.Wish
	reason  *string
	match   httpx.Match
	reprice bool
}

// update locks units before the booking, in the order that creates use too, and both before any claim.
func (a *Bookings) update(ctx context.Context, tx pg.Tx, u update) (idem.Reply, error) {
	var units []domain.UnitID
	claims := u.wish.Rewires() || u.wish.Status != nil
	if claims {
		var err error
		if units, err = store.LockUnits(ctx, tx, u.id, domain.Booking{}.Links(u.wish).Unit); err != nil {
			return idem.Reply{}, err
		}
	}
	current, err := store.BookingForUpdate(ctx, tx, u.id)
	if err != nil {
		return idem.Reply{}, err
	}
	if claims && !current.UnitID.IsZero() && !slices.Contains(units, current.UnitID) {
		return idem.Reply{}, errMoved
	}
	if u.err != nil {
		return idem.Reply{}, u.err
	}
	now := a.now(ctx) // not before the locks: a hold may have run out while we waited, and somebody been told so
	if current.Lapsed(now) {
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return idem.Reply{}, err
		}
	}
	return a.change(ctx, tx, u, current, now)
}

// change judges the wish in the contract's order (fields, If-httpx.Match, state), and writes what it comes to.
func (a *Bookings) change(ctx context.Context, tx pg.Tx, u update, current domain.Booking, now time.Time) (idem.Reply, error) {
	wanted, claim, err := a.rewire(ctx, tx, u, current, now)
	if err != nil {
		return idem.Reply{}, err
	}
	if err := u.match.Check(current.Version); err != nil {
		return idem.Reply{}, err
	}
	if u.reprice {
		err = wanted.Repriceable()
	} else {
		wanted, err = wanted.Settle(u.wish, u.reason, now)
	}
	if err != nil {
		return idem.Reply{}, err
	}
	before, err := render(ctx, current)
	if err != nil {
		return idem.Reply{}, err
	}
	after, err := render(ctx, wanted)
	if err != nil {
		return idem.Reply{}, err
	}
	previous := outbox.Diff(before, after)
	if string(previous) == "{}" {
		return answer(http.StatusOK, current, before), nil
	}
	return a.save(ctx, tx, wanted, claim, previous, now)
}

// rewire applies time, links and guests, or a new price, and returns the claim they call for while the booking holds its
// unit; nil: the claim stays as it is.
func (a *Bookings) rewire(ctx context.Context, tx pg.Tx, u update, current domain.Booking, now time.Time) (domain.Booking, *store.Claim, error) {
	if u.reprice {
		wanted, err := a.repriced(ctx, tx, current, now)
		return wanted, nil, err
	}
	if !u.wish.Rewires() {
		return current, nil, nil
	}
	when, err := u.wish.When(current.Loc)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	refs, _, err := a.refs(ctx, tx, current.Links(u.wish), u.met, now)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	wanted, err := current.Rewire(u.wish, when, refs, u.policy, now)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	if wanted.KeepsSlot(current) {
		return wanted, nil, nil
	}
	return wanted, claimOf(wanted, refs.Service), nil
}

func (a *Bookings) save(ctx context.Context, tx pg.Tx, wanted domain.Booking, claim *store.Claim, previous json.RawMessage, now time.Time) (idem.Reply, error) {
	saved, err := store.UpdateBooking(ctx, tx, wanted)
	if err != nil {
		return idem.Reply{}, err
	}
	if err := a.reclaim(ctx, tx, saved, claim, now); err != nil {
		return idem.Reply{}, err
	}
	body, err := render(ctx, saved)
	if err != nil {
		return idem.Reply{}, err
	}
	return answer(http.StatusOK, saved, body), a.emit(ctx, tx, bookingChanged(saved, body, previous))
}

// reclaim moves the claim in one statement, so that the booking holds either its old slot or its new one.
func (a *Bookings) reclaim(ctx context.Context, tx pg.Tx, b domain.Booking, claim *store.Claim, now time.Time) error {
	if !b.Status.Holds() || b.UnitID.IsZero() {
		return store.DeleteClaim(ctx, tx, b.ID)
	}
	if claim == nil {
		return nil
	}
	if err := a.expireInTheWay(ctx, tx, *claim, now); err != nil {
		return err
	}
	return store.PutClaim(ctx, tx, *claim)
}
