package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// DueBookings is a table of bookings with intents that a worker must process.
type DueBookings struct {
	table string
	left  string // the condition for an intent, as p, that must be processed
	again string // what happens if the table already has a booking that PutAll writes
}

// The tables of the bookings whose payments are to be settled, and of those whose open intents are to be canceled.
var (
	Settlements   = DueBookings{"booking_settlements", unsettled, dueEarlier}
	Cancellations = DueBookings{"lost_bookings", openIntents, ` on conflict do nothing`}
)

const (
	// openIntents are the states in which an intent can be paid and canceled, or can still reach such a state.
	openIntents = `p.status in ('creating', 'requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture')`
	// unsettled selects the successful payments for which it is not yet decided whether they are refunded because the booking is lost.
	unsettled  = `p.gateway_id is not null and p.status = 'succeeded' and not p.settled`
	dueEarlier = ` on conflict (tenant_id, livemode, booking_id) do update set due_at = least(d.due_at, excluded.due_at)`
)

// PutAll writes canceled or expired bookings of any tenants, if they have an intent that must be processed. tx has the worker role, and has
// already written the state of these bookings: see HeldStatus.
func (d DueBookings) PutAll(ctx context.Context, tx pg.Tx, lost []BookingKey, now time.Time) error {
	tenants, modes, list := keyColumns(lost)
	return pg.Exec(ctx, tx, "put into "+d.table, `
		insert into `+d.table+` as d (tenant_id, livemode, booking_id, due_at)
		select l.tenant_id, l.livemode, l.booking_id, $4 from unnest($1::uuid[], $2::boolean[], $3::uuid[]) l (tenant_id, livemode, booking_id)
		where exists (select from payment_intents p where p.tenant_id = l.tenant_id and p.livemode = l.livemode
			and p.booking_id = l.booking_id and `+d.left+`)
		order by l.tenant_id, l.livemode, l.booking_id`+d.again, tenants, modes, list, now)
}

// Put writes a canceled or expired booking with an intent that must be processed from now on.
func (d DueBookings) Put(ctx context.Context, tx pg.Tx, id domain.BookingID, now time.Time) error {
	return pg.Exec(ctx, tx, "put into "+d.table, `insert into `+d.table+` as d (tenant_id, livemode, booking_id, due_at) values (@tenant, @live, @id, @now)`+
		dueEarlier, pg.Args{"id": id, "now": now})
}

// DueBooking is a booking that is due in a table.
type DueBooking struct {
	operation.Owner

	BookingID domain.BookingID
}

// Find returns the function that finds due bookings.
func (d DueBookings) Find() operation.Find[DueBooking] {
	return operation.FindDue[DueBooking](`select d.tenant_id, d.livemode, d.booking_id from `+d.table+` d where d.due_at <= $3`, "d", "d.due_at")
}

// Take takes a booking until a time and returns how often it was taken. It returns 0 if another process holds the booking or has ended it.
func (d DueBookings) Take(ctx context.Context, tx pg.Tx, id domain.BookingID, now, until time.Time) (tries int, err error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[int], `update `+d.table+` b set due_at = @until, tries = b.tries + 1 where `+bookingRow+`
		and b.due_at <= @now returning b.tries`, pg.Args{"id": id, "now": now, "until": until})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// OpenIntents reads up to limit open intents of a booking.
func OpenIntents(ctx context.Context, q pg.Q, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	return intents.Many(ctx, q, `p.booking_id = @booking and `+openIntents+` order by p.id limit @limit`, pg.Args{"booking": booking, "limit": limit})
}

// Unsettled reads up to limit payments of a booking that are not settled, newest first.
func Unsettled(ctx context.Context, q pg.Q, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	return intents.Many(ctx, q, `p.booking_id = @booking and `+unsettled+` order by p.created_at desc, p.id desc limit @limit`,
		pg.Args{"booking": booking, "limit": limit})
}

// bookingRow is the condition for the row of a booking, as b.
const bookingRow = `b.tenant_id = @tenant and b.livemode = @live and b.booking_id = @id`

// Postpone writes when to retry a booking.
func (d DueBookings) Postpone(ctx context.Context, tx pg.Tx, id domain.BookingID, due time.Time) error {
	return pg.Exec(ctx, tx, "postpone in "+d.table, `update `+d.table+` b set due_at = @due where `+bookingRow, pg.Args{"id": id, "due": due})
}

// End deletes a booking that has nothing left to process. It returns false if an intent is left. It locks the row first, so an
// intent that must be processed from now on is either seen, or adds the booking again afterwards.
func (d DueBookings) End(ctx context.Context, tx pg.Tx, id domain.BookingID) (ended bool, err error) {
	args := pg.Args{"id": id}
	pg.Queue(tx, "lock in "+d.table, `select from `+d.table+` b where `+bookingRow+` for update`, args)
	n, err := pg.Affect(ctx, tx, "end in "+d.table, `delete from `+d.table+` b where `+bookingRow+` and not exists (
		select from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @id and `+d.left+`)`, args)
	return n > 0, err
}
