package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// unsettled are the payments that were taken, and of which it is not decided whether they are refunded because the booking is lost.
const unsettled = `p.gateway_id is not null and p.status = 'succeeded' and not p.settled`

// PutSettlements notes bookings of any tenants that are cancelled or have expired, where a payment of theirs is not settled. tx has the
// worker role, and has written the state of these bookings before: see HeldStatus.
func PutSettlements(ctx context.Context, tx pg.Tx, lost []BookingKey, now time.Time) error {
	tenants, modes, list := make([][16]byte, len(lost)), make([]bool, len(lost)), make([][16]byte, len(lost))
	for i, b := range lost {
		tenants[i], modes[i], list[i] = b.Tenant.UUID(), b.Livemode, b.ID.UUID()
	}
	_, err := tx.Exec(ctx, `
		insert into booking_settlements as s (tenant_id, livemode, booking_id, due_at)
		select l.tenant_id, l.livemode, l.booking_id, $4 from unnest($1::uuid[], $2::boolean[], $3::uuid[]) l (tenant_id, livemode, booking_id)
		where exists (select from payment_intents p where p.tenant_id = l.tenant_id and p.livemode = l.livemode
			and p.booking_id = l.booking_id and `+unsettled+`)
		order by l.tenant_id, l.livemode, l.booking_id
		on conflict (tenant_id, livemode, booking_id) do update set due_at = least(s.due_at, excluded.due_at)`, tenants, modes, list, now)
	if err != nil {
		return fmt.Errorf("note %d settlements: %w", len(lost), err)
	}
	return nil
}

// PutSettlement notes a booking that is cancelled or has expired, where a payment of it has just succeeded.
func PutSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID, now time.Time) error {
	return noteDue(ctx, tx, "booking_settlements", id, now)
}

// noteDue notes in a table that there is work for a booking.
func noteDue(ctx context.Context, tx pg.Tx, table string, id domain.BookingID, now time.Time) error {
	_, err := tx.Exec(ctx, `insert into `+table+` as n (tenant_id, livemode, booking_id, due_at) values (@tenant, @live, @id, @now)
		on conflict (tenant_id, livemode, booking_id) do update set due_at = least(n.due_at, excluded.due_at)`, pg.Args{"id": id, "now": now})
	if err != nil {
		return fmt.Errorf("note in %s: %w", table, err)
	}
	return nil
}

// SettlementsDue returns up to limit bookings of all tenants and modes but those of except that are to be settled, the oldest first;
// tx has the worker role.
func SettlementsDue(ctx context.Context, tx pg.Tx, now time.Time, except []Home, limit int) ([]LostBooking, error) {
	tenants, modes := homes(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[LostBooking], `
		select s.tenant_id, s.livemode, s.booking_id from booking_settlements s
		where s.due_at <= $3`+outside("s")+` order by s.due_at limit $4`, tenants, modes, now, limit)
}

// TakeSettlement takes a booking until a time and returns how often it was taken; 0 when another process has it or has settled it.
func TakeSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID, now, until time.Time) (tries int, err error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[int], `update booking_settlements s set due_at = @until, tries = s.tries + 1
		where s.tenant_id = @tenant and s.livemode = @live and s.booking_id = @id and s.due_at <= @now returning s.tries`,
		pg.Args{"id": id, "now": now, "until": until})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// PostponeSettlement notes when a booking is tried again.
func PostponeSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID, due time.Time) error {
	_, err := tx.Exec(ctx, `update booking_settlements s set due_at = @due
		where s.tenant_id = @tenant and s.livemode = @live and s.booking_id = @id`, pg.Args{"id": id, "due": due})
	return err
}

// EndSettlement ends a booking that has no payment left to settle; false when it has one. The row is locked first: a payment that
// succeeds meanwhile either is seen, or notes the booking anew afterwards.
func EndSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID) (ended bool, err error) {
	args := pg.Args{"id": id}
	const row = `s.tenant_id = @tenant and s.livemode = @live and s.booking_id = @id`
	if _, err := tx.Exec(ctx, `select from booking_settlements s where `+row+` for update`, args); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `delete from booking_settlements s where `+row+` and not exists (
		select from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @id and `+unsettled+`)`, args)
	if err != nil {
		return false, fmt.Errorf("end settlement: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// Unsettled reads the payments of a booking that are not settled, the newest first, up to limit.
func Unsettled(ctx context.Context, q pg.Q, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	return pg.Many(ctx, q, scanIntent, oneIntent+`p.booking_id = @booking and `+unsettled+` order by p.created_at desc, p.id desc limit @limit`,
		pg.Args{"booking": booking, "limit": limit})
}

// Settle notes that a payment is settled; false when it was before.
func Settle(ctx context.Context, tx pg.Tx, id domain.IntentID) (bool, error) {
	tag, err := tx.Exec(ctx, `update payment_intents p set settled = true
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id and not p.settled`, pg.Args{"id": id})
	if err != nil {
		return false, fmt.Errorf("settle payment: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// BeginAutomaticRefund notes an automatic refund; false when it was begun before. Its row is locked until the transaction ends.
func BeginAutomaticRefund(ctx context.Context, tx pg.Tx, a domain.AutomaticRefund) (bool, error) {
	tag, err := tx.Exec(ctx, `insert into automatic_refunds (tenant_id, livemode, cause, subject, wanted)
		values (@tenant, @live, @cause, @subject, @wanted) on conflict do nothing`,
		pg.Args{"cause": a.Cause, "subject": a.Subject, "wanted": a.Wanted})
	if err != nil {
		return false, fmt.Errorf("begin automatic refund: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// SaveAutomaticRefund notes the refund that was made of an automatic one.
func SaveAutomaticRefund(ctx context.Context, tx pg.Tx, a domain.AutomaticRefund, id domain.RefundID) error {
	_, err := tx.Exec(ctx, `update automatic_refunds a set refund_id = @refund
		where a.tenant_id = @tenant and a.livemode = @live and a.cause = @cause and a.subject = @subject`,
		pg.Args{"cause": a.Cause, "subject": a.Subject, "refund": id})
	return err
}
