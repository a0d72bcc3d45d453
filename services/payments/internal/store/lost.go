package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// openIntents are the states in which an intent can be paid and canceled, or can still reach such a state.
const openIntents = `p.status in ('creating', 'requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture')`

// PutLost writes bookings of any tenants that no longer accept payments, if they have an open intent. tx has the worker role.
func PutLost(ctx context.Context, tx pg.Tx, lost []BookingKey, now time.Time) error {
	tenants, modes, list := make([][16]byte, len(lost)), make([]bool, len(lost)), make([][16]byte, len(lost))
	for i, b := range lost {
		tenants[i], modes[i], list[i] = b.Tenant.UUID(), b.Livemode, b.ID.UUID()
	}
	_, err := tx.Exec(ctx, `
		insert into lost_bookings (tenant_id, livemode, booking_id, due_at)
		select l.tenant_id, l.livemode, l.booking_id, $4 from unnest($1::uuid[], $2::boolean[], $3::uuid[]) l (tenant_id, livemode, booking_id)
		where exists (select from payment_intents p where p.tenant_id = l.tenant_id and p.livemode = l.livemode
			and p.booking_id = l.booking_id and `+openIntents+`)
		order by l.tenant_id, l.livemode, l.booking_id
		on conflict do nothing`, tenants, modes, list, now)
	if err != nil {
		return fmt.Errorf("note %d lost bookings: %w", len(lost), err)
	}
	return nil
}

// PutReopened writes a canceled or expired booking with an intent that has just become open again.
func PutReopened(ctx context.Context, tx pg.Tx, id domain.BookingID, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into lost_bookings as l (tenant_id, livemode, booking_id, due_at) values (@tenant, @live, @id, @now)
		on conflict (tenant_id, livemode, booking_id) do update set due_at = least(l.due_at, excluded.due_at)`, pg.Args{"id": id, "now": now})
	if err != nil {
		return fmt.Errorf("note lost booking: %w", err)
	}
	return nil
}

// LostBooking is a booking whose open intents must be canceled.
type LostBooking struct {
	operation.Owner

	BookingID domain.BookingID
}

// LostBookings returns up to limit due bookings of all tenants and modes, oldest first. It skips the owners in except. tx has the
// worker role.
func LostBookings(ctx context.Context, tx pg.Tx, now time.Time, except []operation.Owner, limit int) ([]LostBooking, error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[LostBooking], `
		select l.tenant_id, l.livemode, l.booking_id from lost_bookings l
		where l.due_at <= $3`+operation.Outside("l")+` order by l.due_at limit $4`, tenants, modes, now, limit)
}

// TakeLost takes a booking until a time and returns how often it was taken. It returns 0 if another process holds the booking or
// has ended it.
func TakeLost(ctx context.Context, tx pg.Tx, id domain.BookingID, now, until time.Time) (tries int, err error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[int], `update lost_bookings l set due_at = @until, tries = l.tries + 1
		where l.tenant_id = @tenant and l.livemode = @live and l.booking_id = @id and l.due_at <= @now returning l.tries`,
		pg.Args{"id": id, "now": now, "until": until})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// OpenIntents reads up to limit open intents of a booking.
func OpenIntents(ctx context.Context, q pg.Q, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	return pg.Many(ctx, q, scanIntent, oneIntent+`p.booking_id = @booking and `+openIntents+` order by p.id limit @limit`,
		pg.Args{"booking": booking, "limit": limit})
}
