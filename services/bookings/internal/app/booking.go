// Package app holds the verbs: one function per use case. A verb works in the transaction that it is given, or opens
// it where other services must be asked before. Inside a transaction are SQL and outbox only.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Directory knows the customers that are not in the projection yet.
type Directory interface {
	Customer(ctx context.Context, id domain.CustomerID) (domain.Customer, error)
}

// Tenants knows each operator's booking policy.
type Tenants interface {
	Policy(ctx context.Context) (domain.Policy, error)
}

// Bookings are the verbs of a booking.
type Bookings struct {
	DB        *pg.DB
	Directory Directory
	Tenants   Tenants
	Numbers   *Numbers
	// Wake tells the relay that an event has been committed.
	Wake func()
	// Now is real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// prefetched is what was asked of others before the transaction. Its error is answered inside the transaction, after
// the look at the idempotency record: an earlier success with the same key outranks it.
type prefetched struct {
	policy  domain.Policy
	number  string
	fetched bool // the customers service has been asked for a customer that the projection lacks
	err     error
}

// Create makes a booking, prices it and claims its unit.
func (a *Bookings) Create(ctx context.Context, transact pg.Transact[domain.Booking], in domain.BookingInput) error {
	pre := a.prefetch(ctx)
	if pre.err == nil {
		pre.number, pre.err = a.Numbers.Next(ctx)
	}
	return a.withCustomer(ctx, func(fetched bool) error {
		return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Booking, error) {
			if pre.err != nil {
				return domain.Booking{}, pre.err
			}
			pre.fetched = fetched
			return a.create(ctx, tx, in, pre)
		})
	})
}

// unknownCustomer is a customer that is not in the projection: the transaction ends, the customers service is asked,
// and the write begins anew.
type unknownCustomer struct{ id domain.CustomerID }

// Error implements error.
func (u unknownCustomer) Error() string {
	return "customer " + u.id.String() + " is not in the projection"
}

// withCustomer runs write, and once more after it has fetched a customer that write did not know.
func (a *Bookings) withCustomer(ctx context.Context, write func(fetched bool) error) error {
	err := write(false)
	var unknown unknownCustomer
	if !errors.As(err, &unknown) {
		return err
	}
	if err := a.fetchCustomer(ctx, unknown.id); err != nil {
		return err
	}
	return write(true)
}

// refs reads the rows that a booking is to name.
func (a *Bookings) refs(ctx context.Context, tx pg.Tx, l domain.Links, fetched bool, now time.Time) (domain.Refs, bool, error) {
	refs, lapsed, err := store.Refs(ctx, tx, l, now)
	if err == nil && refs.Customer == nil && !l.Customer.IsZero() && !fetched {
		err = unknownCustomer{l.Customer}
	}
	return refs, lapsed, err
}

func (a *Bookings) create(ctx context.Context, tx pg.Tx, in domain.BookingInput, pre prefetched) (domain.Booking, error) {
	c := caller.FromContext(ctx)
	loc, err := domain.Location(c.Timezone)
	if err != nil {
		return domain.Booking{}, err
	}
	when, err := in.When(loc)
	if err != nil {
		return domain.Booking{}, err
	}
	blank := domain.Booking{ID: domain.NewBookingID(), Number: pre.number, Loc: loc, Amounts: domain.NoMoney(c.Currency)}
	refs, lapsed, err := a.refs(ctx, tx, blank.Links(in), pre.fetched, a.now(ctx))
	if err != nil {
		return domain.Booking{}, err
	}
	now := a.now(ctx) // the unit is locked: a hold begins when it is taken, not when it was asked for
	b, err := domain.New(in, when, refs, pre.policy, blank, now)
	if err != nil {
		return domain.Booking{}, err
	}
	claim := claimOf(b, refs.Service)
	if claim != nil && lapsed {
		if err := a.expireOverlappingHolds(ctx, tx, *claim, now); err != nil {
			return domain.Booking{}, err
		}
	}
	if b, err = store.InsertBooking(ctx, tx, b, claim); err != nil {
		return domain.Booking{}, err
	}
	if b.HoldExpiresAt != nil {
		if err := saveClock(ctx, tx); err != nil {
			return domain.Booking{}, err
		}
	}
	body, err := render(ctx, b)
	if err != nil {
		return domain.Booking{}, err
	}
	return b, a.emit(ctx, tx, bookingCreated(b, body))
}

// prefetch asks identity for the operator's policy.
func (a *Bookings) prefetch(ctx context.Context) (pre prefetched) {
	pre.policy, pre.err = a.Tenants.Policy(ctx)
	return pre
}

// fetchCustomer writes a customer of the customers service into the projection. One that does not exist stays unknown.
func (a *Bookings) fetchCustomer(ctx context.Context, id domain.CustomerID) error {
	c, err := a.Directory.Customer(ctx, id)
	if errors.Is(err, domain.ErrCustomerNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.PutCustomer(ctx, tx, c) })
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

// expire writes what every reader already sees of a lapsed hold, with its event.
func (a *Bookings) expire(ctx context.Context, tx pg.Tx, b domain.Booking, now time.Time) (domain.Booking, error) {
	before, err := render(ctx, b)
	if err != nil {
		return domain.Booking{}, err
	}
	if err := store.DeleteClaim(ctx, tx, b.ID); err != nil {
		return domain.Booking{}, err
	}
	b, err = store.UpdateBooking(ctx, tx, b.At(now))
	if err != nil {
		return domain.Booking{}, err
	}
	after, err := render(ctx, b)
	if err != nil {
		return domain.Booking{}, err
	}
	return b, a.emit(ctx, tx, bookingChanged(b, after, outbox.Diff(before, after)))
}

func (a *Bookings) now(ctx context.Context) time.Time {
	return caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
}

func (a *Bookings) emit(ctx context.Context, tx pg.Tx, e outbox.Event) error {
	tx.AfterCommit(a.Wake)
	if err := outbox.Add(ctx, tx, e); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

func claimOf(b domain.Booking, s *domain.Service) *store.Claim {
	from, to, ok := b.Claim(s)
	if !ok {
		return nil
	}
	return &store.Claim{Booking: b.ID, Unit: b.UnitID, From: from, To: to}
}

// diff is what the change shows of the booking before it; {} is nothing.
func diff(ctx context.Context, before, after domain.Booking) (json.RawMessage, error) {
	was, err := render(ctx, before)
	if err != nil {
		return nil, err
	}
	is, err := render(ctx, after)
	if err != nil {
		return nil, err
	}
	return outbox.Diff(was, is), nil
}

func render(ctx context.Context, b domain.Booking) (json.RawMessage, error) {
	return contract.Encode(view.Booking(b, mode(ctx)))
}
