// Package app holds the verbs: one method per use case, each the owner of its transaction. Inside it are SQL
// and outbox only; what other services know is asked before it begins.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Directory knows the customers that the projection has not met yet.
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
	Idem      *idem.Store
	Directory Directory
	Tenants   Tenants
	Numbers   *Numbers
	// Wake tells the relay that an event has been committed.
	Wake func()
	// Now is real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// known is what was asked of others before the transaction. Its errors are answered inside it, after the
// look at the idempotency record: an earlier success with the same key outranks them.
type known struct {
	policy domain.Policy
	number string
	met    bool // the customers service has been asked for a customer that the projection lacks
	err    error
}

// Create makes a booking, prices it and claims its unit.
func (a *Bookings) Create(ctx context.Context, w domain.Wish) (idem.Reply, error) {
	pre := a.prepare(ctx)
	if pre.err == nil {
		pre.number, pre.err = a.Numbers.Next(ctx)
	}
	reply, err := a.acquainted(ctx, func(met bool) (idem.Reply, error) {
		return a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
			if pre.err != nil {
				return idem.Reply{}, pre.err
			}
			pre.met = met
			return a.create(ctx, tx, w, pre)
		})
	})
	return reply, err
}

// stranger is a customer that the projection does not know: the transaction ends, the customers service is
// asked, and the write begins anew.
type stranger struct{ id domain.CustomerID }

// Error implements error.
func (s stranger) Error() string { return "customer " + s.id.String() + " is not in the projection" }

// acquainted runs write, and once more when it met a stranger.
func (a *Bookings) acquainted(ctx context.Context, write func(met bool) (idem.Reply, error)) (idem.Reply, error) {
	reply, err := write(false)
	var s stranger
	if !errors.As(err, &s) {
		return reply, err
	}
	if err := a.meet(ctx, s.id); err != nil {
		return idem.Reply{}, err
	}
	return write(true)
}

// refs reads what a booking is to name.
func (a *Bookings) refs(ctx context.Context, tx pg.Tx, l domain.Links, met bool, now time.Time) (domain.Refs, bool, error) {
	refs, lapsed, err := store.Refs(ctx, tx, l, now)
	if err == nil && refs.Customer == nil && !l.Customer.IsZero() && !met {
		err = stranger{l.Customer}
	}
	return refs, lapsed, err
}

func (a *Bookings) create(ctx context.Context, tx pg.Tx, w domain.Wish, pre known) (idem.Reply, error) {
	c := caller.Must(ctx)
	loc, err := domain.Location(c.Timezone)
	if err != nil {
		return idem.Reply{}, err
	}
	when, err := w.When(loc)
	if err != nil {
		return idem.Reply{}, err
	}
	blank := domain.Booking{ID: domain.NewBookingID(), Number: pre.number, Loc: loc, Amounts: domain.NoMoney(c.Currency)}
	refs, lapsed, err := a.refs(ctx, tx, blank.Links(w), pre.met, a.now(ctx))
	if err != nil {
		return idem.Reply{}, err
	}
	now := a.now(ctx) // the unit is locked: a hold begins when it is taken, not when it was asked for
	b, err := domain.New(w, when, refs, pre.policy, blank, now)
	if err != nil {
		return idem.Reply{}, err
	}
	claim := claimOf(b, refs.Service)
	if claim != nil && lapsed {
		if err := a.expireInTheWay(ctx, tx, *claim, now); err != nil {
			return idem.Reply{}, err
		}
	}
	if b, err = store.InsertBooking(ctx, tx, b, claim); err != nil {
		return idem.Reply{}, err
	}
	if b.HoldExpiresAt != nil {
		if err := learnClock(ctx, tx); err != nil {
			return idem.Reply{}, err
		}
	}
	body, err := render(ctx, b)
	if err != nil {
		return idem.Reply{}, err
	}
	reply := answer(http.StatusCreated, b, body)
	reply.Location = "/api/v1/bookings/" + b.ID.String()
	return reply, a.emit(ctx, tx, bookingCreated(b, body))
}

// prepare asks identity for the operator's policy.
func (a *Bookings) prepare(ctx context.Context) (pre known) {
	pre.policy, pre.err = a.Tenants.Policy(ctx)
	return pre
}

// meet brings a customer that the projection does not know yet into it. One that nobody knows stays unknown.
func (a *Bookings) meet(ctx context.Context, id domain.CustomerID) error {
	c, err := a.Directory.Customer(ctx, id)
	if errors.Is(err, domain.ErrCustomerNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.PutCustomer(ctx, tx, c) })
}

// expireInTheWay expires the lapsed holds that a claim meets, each with its event.
func (a *Bookings) expireInTheWay(ctx context.Context, tx pg.Tx, claim store.Claim, now time.Time) error {
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
	return caller.Must(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
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

func answer(status int, b domain.Booking, body json.RawMessage) idem.Reply {
	return idem.Reply{Status: status, ETag: httpx.ETag(b.Version), Resource: b.ID.String(), Body: body}
}

func render(ctx context.Context, b domain.Booking) (json.RawMessage, error) {
	return httpx.Encode(view.Booking(b, api.Mode(caller.Must(ctx).Mode)))
}
