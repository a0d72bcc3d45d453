package app

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// errMoved reports that the booking changed its unit between the read and the lock. The units must be locked again.
var errMoved = &operation.Again{Why: "booking moved to another unit"}

// PrepareUpdate requests the operator's policy if the time changes, and the default taxes if the package does.
func (a *Bookings) PrepareUpdate(ctx context.Context, in domain.BookingInput) (w *Write, err error) {
	w = &Write{LinkedInput: domain.LinkedInput{BookingInput: in}}
	if in.HasTime() || in.PackageID.Given() {
		w.tenant, err = a.Tenants.Tenant(ctx)
	}
	return w, err
}

// PrepareReprice requests the operator's default taxes.
func (a *Bookings) PrepareReprice(ctx context.Context) (w *Write, err error) {
	w = &Write{reprice: true}
	w.tenant, err = a.Tenants.Tenant(ctx)
	return w, err
}

// Cancellation returns the change that cancels a booking and releases its unit. Canceling a canceled booking changes nothing.
func Cancellation(reason *string) *Write {
	return &Write{LinkedInput: domain.LinkedInput{BookingInput: domain.BookingInput{Status: patch.Value(domain.Cancelled)}}, reason: reason}
}

// Update changes the given fields. A change without a visible effect creates neither a new version nor an event. Update locks units
// before the booking, in the same order as create, and both before any claim.
func (a *Bookings) Update(ctx context.Context, tx pg.Tx, id domain.BookingID, w *Write, match patch.Precondition) (domain.Booking, error) {
	var units []domain.UnitID
	claims := w.HasSchedule() || w.Status.Given()
	if claims {
		var err error
		if units, err = store.LockUnits(ctx, tx, id, domain.Booking{}.Links(w.BookingInput).Unit); err != nil {
			return domain.Booking{}, err
		}
	}
	current, err := store.BookingForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Booking{}, err
	}
	if claims && !current.UnitID.IsZero() && !slices.Contains(units, current.UnitID) {
		return domain.Booking{}, errMoved
	}
	now := a.now(ctx) // after the locks: a hold may lapse during the wait, and a client may have received that state
	if current.Lapsed(now) {
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return domain.Booking{}, err
		}
	}
	return a.change(ctx, tx, w, match, current, now)
}

// change checks the input in the contract's order (fields, If-Match, state) and writes the result.
func (a *Bookings) change(
	ctx context.Context, tx pg.Tx, w *Write, match patch.Precondition, current domain.Booking, now time.Time,
) (domain.Booking, error) {
	next, claim, err := a.reschedule(ctx, tx, w, current, now)
	if err != nil {
		return domain.Booking{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.Booking{}, err
	}
	switch {
	case w.reprice:
		err = next.Repriceable()
	case w.account == nil && next.NeedsAccount(w.BookingInput, now):
		err = a.readAccount(current, w)
	default:
		next, err = next.ApplyStatus(w.BookingInput, w.reason, w.account, now)
	}
	if err != nil {
		return domain.Booking{}, err
	}
	if w.account != nil && w.Status.Given() {
		failpoint.Here("cancellation.prepared")
		tx.AfterCommit(func() { failpoint.Here("cancellation.committed") })
	}
	previous, err := outbox.Previous(ctx, view.Booking, current, next)
	if err != nil || string(previous) == "{}" {
		return current, err
	}
	return a.save(ctx, tx, next, claim, previous, now)
}

// readAccount returns the error of a change that depends on the booking's account, which it requests once from payments. No lock is needed:
// money that moves after the response counts as moved after the change. A cancellation records the version of the account.
func (a *Bookings) readAccount(b domain.Booking, w *Write) error {
	return &operation.Again{Why: "account of the booking not read", Fetch: func(ctx context.Context) error {
		state, err := a.Accounts.Account(ctx, b.ID, b.Total.Currency)
		w.account = &state
		return err
	}}
}

// checkCurrency returns the error of a price in another currency unless the account in the current one is without money.
func (a *Bookings) checkCurrency(current, next domain.Booking, w *Write) error {
	if next.Total.Currency == current.Total.Currency {
		return nil
	}
	if w.account == nil {
		return a.readAccount(current, w)
	}
	return w.account.FixesCurrency()
}

// reschedule applies time, links and guests, or a new price. If the booking occupies its unit, reschedule returns the required
// claim; nil means that the claim stays unchanged.
func (a *Bookings) reschedule(ctx context.Context, tx pg.Tx, w *Write, current domain.Booking, now time.Time) (domain.Booking, *store.Claim, error) {
	if w.reprice {
		next, err := a.repriced(ctx, tx, w, current, now)
		return next, nil, err
	}
	if !w.HasSchedule() {
		return current, nil, nil
	}
	when, err := w.When(current.Loc)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	refs, err := a.refs(ctx, tx, current.Links(w.BookingInput), w, now)
	if err != nil {
		return domain.Booking{}, nil, err
	}
	next, err := current.ApplySchedule(w.BookingInput, when, refs.Refs, w.tenant.Policy, now)
	if err == nil {
		err = a.checkCurrency(current, next, w)
	}
	if err != nil {
		return domain.Booking{}, nil, err
	}
	if next.SameSlot(current) {
		return next, resized(next, refs.Refs), nil
	}
	claim, err := offered(ctx, tx, next, refs.Refs)
	return next, claim, err
}

// resized returns the claim of a booking that takes another number of seats in its slot. Nil means that the number is unchanged.
func resized(next domain.Booking, refs domain.Refs) *store.Claim {
	claim := claimOf(next, refs)
	if next.Session.IsZero() || !claim.Shared() || claim.Seats == next.Seats {
		return nil
	}
	return claim
}

func (a *Bookings) save(ctx context.Context, tx pg.Tx, next domain.Booking, claim *store.Claim, previous json.RawMessage, now time.Time) (domain.Booking, error) {
	next, err := a.reseat(ctx, tx, next, claim, now)
	if err != nil {
		return domain.Booking{}, err
	}
	saved, err := store.UpdateBooking(ctx, tx, next)
	if err != nil {
		return domain.Booking{}, err
	}
	if err := a.reclaim(ctx, tx, saved, claim, now); err != nil {
		return domain.Booking{}, err
	}
	body, err := outbox.Body(ctx, view.Booking, saved)
	if err != nil {
		return domain.Booking{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Wake, bookingChanged(saved, body, previous))
}

// reseat takes the seats of a claim of a shared unit. A booking that no longer needs seats leaves its session.
func (a *Bookings) reseat(ctx context.Context, tx pg.Tx, next domain.Booking, claim *store.Claim, now time.Time) (domain.Booking, error) {
	held := next.Status.Holds() && !next.UnitID.IsZero()
	if !held || claim != nil && (!claim.Shared() || claim.Seats == 0) {
		next.Session, next.Seats = domain.SessionID{}, 0
	}
	if !held || !claim.Shared() {
		return next, nil
	}
	if err := a.expireOverlappingHolds(ctx, tx, *claim, now); err != nil {
		return domain.Booking{}, err
	}
	return takeSeats(ctx, tx, next, *claim)
}

// reclaim moves the claim in one statement, so that the booking always holds either its old slot or its new one. The claim of a booking
// that takes seats is its session.
func (a *Bookings) reclaim(ctx context.Context, tx pg.Tx, b domain.Booking, claim *store.Claim, now time.Time) error {
	if !b.Status.Holds() || b.UnitID.IsZero() || !b.Session.IsZero() {
		return store.DeleteClaim(ctx, tx, b.ID)
	}
	if claim == nil || claim.Shared() {
		return nil
	}
	if err := a.expireOverlappingHolds(ctx, tx, *claim, now); err != nil {
		return err
	}
	return store.PutClaim(ctx, tx, *claim)
}

// repriced applies the price of the current terms, regardless of previous payments in its currency. It does not read the unit, which does not affect the price; locking the unit
// after the booking would reverse the lock order.
func (a *Bookings) repriced(ctx context.Context, tx pg.Tx, w *Write, current domain.Booking, now time.Time) (domain.Booking, error) {
	refs, err := store.Refs(ctx, tx, domain.Links{Package: current.PackageID}, now)
	if err != nil {
		return domain.Booking{}, err
	}
	refs.Taxes = w.tenant.Taxes
	next, err := current.Reprice(refs.Refs)
	if err == nil {
		err = a.checkCurrency(current, next, w)
	}
	return next, err
}
