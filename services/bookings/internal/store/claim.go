package store

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Claim reserves a unit for a booking from From to To, including buffers. The range is half open.
type Claim struct {
	Booking  domain.BookingID
	Unit     domain.UnitID
	From, To time.Time
	Capacity int         // seats of a slot of a shared unit; 0: not shared
	Seats    int         // that the booking takes; 0: all
	Slot     domain.Span // of a shared unit, without buffers
}

// Shared reports whether there is a claim, and it is for some or all seats of a shared unit.
func (c *Claim) Shared() bool { return c != nil && c.Capacity > 0 }

// PutClaim creates or moves the booking's claim. It returns domain.ErrSlotUnavailable if another booking holds the unit at that
// time. The unit and the previous unit must be locked.
func PutClaim(ctx context.Context, tx pg.Tx, c Claim) error {
	_, err := tx.Exec(ctx, putClaim, c.args())
	return claimError(err)
}

const insertClaim = `
	insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at)
	values (@tenant, @live, @booking, @unit, @from, @to)`

const putClaim = insertClaim + `
	on conflict (tenant_id, livemode, booking_id) do update
	set unit_id = excluded.unit_id, starts_at = excluded.starts_at, ends_at = excluded.ends_at`

func (c Claim) args() pg.Args {
	return pg.Args{"booking": c.Booking, "unit": c.Unit, "from": c.From, "to": c.To}
}

// DeleteClaim releases the booking's unit. Without a claim it does nothing.
func DeleteClaim(ctx context.Context, tx pg.Tx, id domain.BookingID) error {
	return pg.Exec(ctx, tx, "delete claim", `
		delete from unit_claims where tenant_id = @tenant and livemode = @live and booking_id = @id`, pg.Args{"id": id})
}

func claimError(err error) error {
	switch {
	case err == nil:
		return nil
	case pg.ConstraintName(err) == "unit_claims_no_overlap":
		return slotError(err)
	default:
		return fmt.Errorf("claim unit: %w", err)
	}
}

// slotError returns the error for a violation of unit_claims_no_overlap. If a closure is the reason, the violation names its table.
func slotError(err error) error {
	if pg.TableName(err) == "closures" {
		return domain.ErrClosed.WithCause(err)
	}
	return domain.ErrSlotUnavailable.WithCause(err)
}

// LapsedForUpdate reads and locks the bookings whose hold has lapsed by now and whose claim overlaps c.
func LapsedForUpdate(ctx context.Context, tx pg.Tx, c Claim, now time.Time) ([]domain.Booking, error) {
	args := c.args()
	args["now"] = now
	const lapsed = `b.unit_id = @unit and b.id is distinct from @booking
		  and b.status = 'pending' and b.hold_expires_at is not null and b.hold_expires_at <= @now
		  and exists (select from unit_claims c where c.tenant_id = @tenant and c.livemode = @live and c.booking_id in (b.id, b.session_id)
			and c.starts_at < @to and c.ends_at > @from)
		order by b.id`
	pg.Queue(tx, "lock lapsed holds", `select from bookings b where b.tenant_id = @tenant and b.livemode = @live and `+lapsed+` for update of b`, args)
	return bookings.Many(ctx, tx, lapsed+` for update of b`, args) // after the lock, as in pg.Table.Get
}
