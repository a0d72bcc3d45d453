package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Session is a claim of a shared unit for all bookings of a slot. Bookings add and remove their seats by a trigger, and the last one
// removes the session.
type Session struct {
	ID              domain.SessionID
	Capacity, Taken int
}

// Left returns the number of seats that are left.
func (s Session) Left() int { return s.Capacity - s.Taken }

// SessionForUpdate reads and locks the session of the claim's slot, or returns nil. The unit must be locked. Sessions are locked after
// all bookings of the transaction: a booking whose hold has lapsed can expire without a lock of its unit, and then waits for its
// session.
func SessionForUpdate(ctx context.Context, tx pg.Tx, c Claim) (*Session, error) {
	s, err := pg.One(ctx, tx, pgx.RowToStructByPos[struct {
		Session

		From, To *time.Time
	}], errNoSession, sessionAt, pg.Args{"unit": c.Unit, "from": c.Slot.From})
	switch {
	case errors.Is(err, errNoSession):
		return nil, nil // A nil session means that there is none.
	case err != nil:
		return nil, fmt.Errorf("read session: %w", err)
	case s.From == nil || !s.From.Equal(c.Slot.From) || !s.To.Equal(c.Slot.To):
		return nil, nil // Another slot, or a booking of all seats.
	}
	return &s.Session, nil
}

// Claims of a unit never overlap, so only the last one that begins by the start of the slot can be its session.
const sessionAt = `
	select c.booking_id, coalesce(c.capacity, 0), coalesce(c.taken, 0), c.slot_from, c.slot_to from unit_claims c
	where c.tenant_id = @tenant and c.livemode = @live and c.unit_id = @unit and c.starts_at <= @from
	order by c.starts_at desc limit 1 for update`

var errNoSession = errors.New("no session")

// OpenSession creates a session without bookings for the claim's slot. A booking of the same transaction must take seats in it. It
// returns domain.ErrSlotUnavailable if another claim overlaps it.
func OpenSession(ctx context.Context, tx pg.Tx, c Claim) (Session, error) {
	s := Session{ID: ids.New[domain.SessionPrefix](), Capacity: c.Capacity}
	args := c.args()
	args["session"], args["capacity"], args["slot_from"], args["slot_to"] = s.ID, c.Capacity, c.Slot.From, c.Slot.To
	_, err := tx.Exec(ctx, `
		insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at, slot_from, slot_to, capacity, taken)
		values (@tenant, @live, @session, @unit, @from, @to, @slot_from, @slot_to, @capacity, 0)`, args)
	return s, claimError(err)
}

// LeaveUnit returns the seats of a booking and deletes its claim, so that the transaction can claim an overlapping time for it.
func LeaveUnit(ctx context.Context, tx pg.Tx, id domain.BookingID) error {
	if _, err := tx.Exec(ctx, `
		update bookings set session_id = null, seats = null
		where tenant_id = @tenant and livemode = @live and id = @id and session_id is not null`, pg.Args{"id": id}); err != nil {
		return fmt.Errorf("return seats: %w", err)
	}
	return DeleteClaim(ctx, tx, id)
}

// claimsFrom is the condition for the claims of a unit that have not ended. Claims of a unit never overlap, so these are the ones that
// begin later and the last one that began before. The limit is a separate value, because coalesce is not leakproof.
const claimsFrom = `c.tenant_id = @tenant and c.livemode = @live and c.unit_id = @unit and c.ends_at > @now and c.starts_at >= (
	select coalesce(max(l.starts_at), @now) from unit_claims l
	where l.tenant_id = @tenant and l.livemode = @live and l.unit_id = @unit and l.starts_at <= @now)`

const claimedFrom = `
	select count(*), coalesce(bool_or(c.capacity is null), false), coalesce(max(c.taken), 0) from unit_claims c where ` + claimsFrom

// Claimed contains what is claimed of a unit from some time on.
type Claimed struct {
	Claims int64
	Whole  bool // a claim takes all seats
	Seats  int  // the most that are taken in a session
}

// ClaimedFrom returns what is claimed of a unit from now on. The unit must be locked.
func ClaimedFrom(ctx context.Context, tx pg.Tx, unit domain.UnitID, now time.Time) (Claimed, error) {
	c, err := pg.One(ctx, tx, pgx.RowToStructByPos[Claimed], pgx.ErrNoRows, claimedFrom, pg.Args{"unit": unit, "now": now})
	if err != nil {
		return Claimed{}, fmt.Errorf("read claims: %w", err)
	}
	return c, nil
}

// SetSeats changes the number of seats of the sessions of a unit from now on. The unit must be locked.
func SetSeats(ctx context.Context, tx pg.Tx, unit domain.UnitID, capacity int, now time.Time) error {
	return pg.Exec(ctx, tx, "set seats", `update unit_claims c set capacity = @capacity where c.capacity is not null and `+claimsFrom,
		pg.Args{"unit": unit, "now": now, "capacity": capacity})
}
