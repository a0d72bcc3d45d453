package store

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// DueBookings is a table of bookings with intents that a worker must process.
type DueBookings struct {
	table string
	left  string // the condition for an intent, as p, that must be processed
}

// The tables of the bookings whose payments are to be settled, and of those whose open intents are to be canceled.
var (
	Settlements   = DueBookings{"booking_settlements", unsettled}
	Cancellations = DueBookings{"lost_bookings", openIntents}
)

// bookingRow is the condition for the row of a booking, as b.
const bookingRow = `b.tenant_id = @tenant and b.livemode = @live and b.booking_id = @id`

// Postpone writes when to retry a booking.
func (d DueBookings) Postpone(ctx context.Context, tx pg.Tx, id domain.BookingID, due time.Time) error {
	_, err := tx.Exec(ctx, `update `+d.table+` b set due_at = @due where `+bookingRow, pg.Args{"id": id, "due": due})
	if err != nil {
		return fmt.Errorf("postpone in %s: %w", d.table, err)
	}
	return nil
}

// End deletes a booking that has nothing left to process. It returns false if an intent is left. It locks the row first, so an
// intent that must be processed from now on is either seen, or adds the booking again afterwards.
func (d DueBookings) End(ctx context.Context, tx pg.Tx, id domain.BookingID) (ended bool, err error) {
	args := pg.Args{"id": id}
	if _, err := tx.Exec(ctx, `select from `+d.table+` b where `+bookingRow+` for update`, args); err != nil {
		return false, fmt.Errorf("lock in %s: %w", d.table, err)
	}
	tag, err := tx.Exec(ctx, `delete from `+d.table+` b where `+bookingRow+` and not exists (
		select from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @id and `+d.left+`)`, args)
	if err != nil {
		return false, fmt.Errorf("end in %s: %w", d.table, err)
	}
	return tag.RowsAffected() > 0, nil
}
