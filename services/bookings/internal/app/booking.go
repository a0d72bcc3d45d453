// Package app contains the use cases, one function each. A use case runs in the given transaction. If it must call other services
// first, it opens the transaction itself. A transaction contains only SQL and outbox writes.
package app

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Directory looks up customers that are not in the projection yet.
type Directory interface {
	Customer(ctx context.Context, id domain.CustomerID) (domain.Customer, error)
}

// Tenants returns each operator's booking policy and default taxes.
type Tenants interface {
	Tenant(ctx context.Context) (domain.Tenant, error)
}

// Accounts returns the state of the account of a booking at payments.
type Accounts interface {
	Account(ctx context.Context, id domain.BookingID, currency string) (domain.AccountState, error)
}

// Bookings contains the use cases of bookings.
type Bookings struct {
	DB        *pg.DB
	Directory Directory
	Tenants   Tenants
	Accounts  Accounts
	Numbers   *numbers.Numbers
	// Wake notifies the relay that an event was committed.
	Wake func()
	// Now returns real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// Write is the input of a booking, with the responses of other services that it needs before its transaction.
type Write struct {
	domain.LinkedInput

	reason  *string // of a cancellation
	reprice bool
	tenant  domain.Tenant
	number  string
	fetched bool                 // the customers service was called for a customer that the projection lacks
	account *domain.AccountState // of a booking that is canceled, or that changes its currency; nil: not requested
}

// PrepareCreate requests the operator's policy and default taxes, and takes a number.
func (a *Bookings) PrepareCreate(ctx context.Context, in domain.BookingInput) (w *Write, err error) {
	return a.prepare(ctx, domain.LinkedInput{BookingInput: in})
}

func (a *Bookings) prepare(ctx context.Context, in domain.LinkedInput) (w *Write, err error) {
	w = &Write{LinkedInput: in}
	if w.tenant, err = a.Tenants.Tenant(ctx); err != nil {
		return w, err
	}
	w.number, err = a.Numbers.Next(ctx)
	return w, err
}

// CreateLinked creates the booking of a quote or a lead, or returns the existing one in any state. After ValidUntil, it sends
// nothing more to the database. Statements sent before end within the time limit of one statement.
func (a *Bookings) CreateLinked(ctx context.Context, in domain.LinkedInput) (domain.Booking, error) {
	if err := in.Check(); err != nil {
		return domain.Booking{}, err
	}
	left := in.ValidUntil.Sub(a.Now())
	if left <= 0 {
		return domain.Booking{}, apperr.ErrUnavailable
	}
	limited, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	b, err := a.createLinked(limited, in)
	if errors.Is(err, domain.ErrLinked) { // the other request has committed, so its booking is found now
		b, err = a.createLinked(limited, in)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return domain.Booking{}, apperr.ErrUnavailable.WithCause(err)
	}
	return b.At(a.now(ctx)), err
}

func (a *Bookings) createLinked(ctx context.Context, in domain.LinkedInput) (b domain.Booking, err error) {
	w, failed := a.prepare(ctx, in)
	failpoint.Here("linked.requested")
	err = operation.RetryTx(ctx, a.DB, func(ctx context.Context, tx pg.Tx) (err error) {
		b, err = a.linked(ctx, tx, w, failed)
		failpoint.Here("linked.written")
		return err
	})
	failpoint.Here("linked.committed")
	return b, err
}

// linked looks up the booking first, because an existing booking takes precedence over any error that would prevent a new one
// today. failed is the error that prevents a new booking.
func (a *Bookings) linked(ctx context.Context, tx pg.Tx, w *Write, failed error) (domain.Booking, error) {
	if !a.Now().Before(w.ValidUntil) {
		return domain.Booking{}, apperr.ErrUnavailable
	}
	b, err := store.LinkedBooking(ctx, tx, w.Origin)
	if !errors.Is(err, domain.ErrBookingNotFound) {
		return b, err
	}
	if failed != nil {
		return domain.Booking{}, failed
	}
	return a.Create(ctx, tx, w)
}

// Price returns a booking of a package on a day without creating it. Its price, and the errors on package_id and event_date, are
// those of POST /bookings. The booking policy is not checked.
func (a *Bookings) Price(ctx context.Context, in domain.BookingInput) (b domain.Booking, err error) {
	c := caller.FromContext(ctx)
	loc, err := civil.Location(c.Timezone)
	if err != nil {
		return domain.Booking{}, err
	}
	when, err := in.When(loc)
	if err != nil {
		return domain.Booking{}, err
	}
	tenant, err := a.Tenants.Tenant(ctx)
	if err != nil {
		return domain.Booking{}, err
	}
	blank := domain.Booking{Loc: loc, Amounts: domain.NoMoney(c.Currency)}
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		refs, err := store.Refs(ctx, tx, blank.Links(in), a.now(ctx))
		if err != nil {
			return err
		}
		refs.Taxes = tenant.Taxes
		b, err = domain.New(in, when, refs.Refs, domain.Policy{}, blank, a.now(ctx))
		return err
	})
	return b, err
}

// refs reads the rows that a booking refers to. If a customer is not in the projection, refs requests it once from the customers
// service.
func (a *Bookings) refs(ctx context.Context, tx pg.Tx, l domain.Links, w *Write, now time.Time) (store.Linked, error) {
	refs, err := store.Refs(ctx, tx, l, now)
	refs.Taxes = w.tenant.Taxes
	if err == nil && refs.Customer == nil && !l.Customer.IsZero() && !w.fetched {
		err = &operation.Again{Why: "customer " + l.Customer.String() + " is not in the projection", Fetch: func(ctx context.Context) error {
			w.fetched = true
			return a.fetchCustomer(ctx, l.Customer)
		}}
	}
	return refs, err
}

// Create creates a booking, prices it, and claims its unit.
func (a *Bookings) Create(ctx context.Context, tx pg.Tx, w *Write) (domain.Booking, error) {
	c := caller.FromContext(ctx)
	loc, err := civil.Location(c.Timezone)
	if err != nil {
		return domain.Booking{}, err
	}
	when, err := w.When(loc)
	if err != nil {
		return domain.Booking{}, err
	}
	blank := domain.Booking{ID: domain.NewBookingID(), Number: w.number, Loc: loc, Amounts: domain.NoMoney(c.Currency)}
	refs, err := a.refs(ctx, tx, blank.Links(w.BookingInput), w, a.now(ctx))
	if err != nil {
		return domain.Booking{}, err
	}
	now := a.now(ctx) // the unit is locked: a hold begins when it is granted, not when it was requested
	b, err := domain.NewLinked(w.LinkedInput, when, refs.Refs, w.tenant.Policy, blank, now)
	if err != nil {
		return domain.Booking{}, err
	}
	claim, err := offered(ctx, tx, b, refs.Refs)
	if err != nil {
		return domain.Booking{}, err
	}
	if claim != nil && refs.Lapsed {
		if err := a.expireOverlappingHolds(ctx, tx, *claim, now); err != nil {
			return domain.Booking{}, err
		}
	}
	if claim.Shared() {
		if b, err = takeSeats(ctx, tx, b, *claim); err != nil {
			return domain.Booking{}, err
		}
		claim = nil
	}
	if b, err = store.InsertBooking(tx, b, claim, refs.At); err != nil {
		return domain.Booking{}, err
	}
	if b.HoldExpiresAt != nil {
		if err := testclock.Save(ctx, tx); err != nil {
			return domain.Booking{}, err
		}
	}
	body, err := outbox.Body(ctx, view.Booking, b)
	if err != nil {
		return domain.Booking{}, err
	}
	return b, outbox.Emit(ctx, tx, a.Wake, bookingCreated(b, body))
}

// expireOverlappingHolds expires the lapsed holds that a claim overlaps, each with its event.
func (a *Bookings) expireOverlappingHolds(ctx context.Context, tx pg.Tx, claim store.Claim, now time.Time) error {
	lapsed, err := store.LapsedForUpdate(ctx, tx, claim, now)
	if err != nil {
		return err
	}
	for _, b := range lapsed {
		if _, err := a.expire(ctx, tx, b, now); err != nil {
			return err
		}
	}
	return nil
}

// expire writes the expiry of a lapsed hold, which every reader already sees, with its event. The caller has the clock that determines
// the expiry.
func (a *Bookings) expire(ctx context.Context, tx pg.Tx, b domain.Booking, now time.Time) (domain.Booking, error) {
	before, err := outbox.Body(ctx, view.Booking, b)
	if err != nil {
		return domain.Booking{}, err
	}
	if err := store.DeleteClaim(ctx, tx, b.ID); err != nil {
		return domain.Booking{}, err
	}
	b = b.At(now)
	if caller.FromContext(ctx).Clock != nil {
		b.ExpiredAt = new(a.Now())
	}
	b.Session, b.Seats = domain.SessionID{}, 0
	b, err = store.UpdateBooking(ctx, tx, b)
	if err != nil {
		return domain.Booking{}, err
	}
	after, err := outbox.Body(ctx, view.Booking, b)
	if err != nil {
		return domain.Booking{}, err
	}
	return b, outbox.Emit(ctx, tx, a.Wake, bookingChanged(b, after, outbox.Diff(before, after)))
}

func (a *Bookings) now(ctx context.Context) time.Time {
	return caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
}

func claimOf(b domain.Booking, refs domain.Refs) *store.Claim {
	from, to, ok := b.Claim(refs.Service)
	if !ok {
		return nil
	}
	c := &store.Claim{Booking: b.ID, Unit: b.UnitID, From: from, To: to}
	if u := refs.Unit; u != nil && u.Shared() {
		c.Slot, c.Capacity, c.Seats = domain.Span{From: *b.StartsAt, To: *b.EndsAt}, *u.Capacity, b.TakesSeats()
	}
	return c
}
