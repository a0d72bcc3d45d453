package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// unsettled selects the successful payments for which it is not yet decided whether they are refunded because the booking is lost.
const unsettled = `p.gateway_id is not null and p.status = 'succeeded' and not p.settled`

// PutSettlements writes canceled or expired bookings of any tenants that have an unsettled payment. tx has the worker role, and has
// already written the state of these bookings: see HeldStatus.
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

// PutSettlement writes a canceled or expired booking with a payment that has just succeeded.
func PutSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into booking_settlements as s (tenant_id, livemode, booking_id, due_at) values (@tenant, @live, @id, @now)
		on conflict (tenant_id, livemode, booking_id) do update set due_at = least(s.due_at, excluded.due_at)`, pg.Args{"id": id, "now": now})
	if err != nil {
		return fmt.Errorf("note settlement: %w", err)
	}
	return nil
}

// SettlementsDue returns up to limit bookings that must be settled, of all tenants and modes, oldest first. It skips the owners in
// except. tx has the worker role.
func SettlementsDue(ctx context.Context, tx pg.Tx, now time.Time, except []operation.Owner, limit int) ([]LostBooking, error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[LostBooking], `
		select s.tenant_id, s.livemode, s.booking_id from booking_settlements s
		where s.due_at <= $3`+operation.Outside("s")+` order by s.due_at limit $4`, tenants, modes, now, limit)
}

// TakeSettlement takes a booking until the given time. It returns how often the booking was taken, or 0 if another process holds it or has
// settled it.
func TakeSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID, now, until time.Time) (tries int, err error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[int], `update booking_settlements s set due_at = @until, tries = s.tries + 1
		where s.tenant_id = @tenant and s.livemode = @live and s.booking_id = @id and s.due_at <= @now returning s.tries`,
		pg.Args{"id": id, "now": now, "until": until})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// Unsettled reads up to limit payments of a booking that are not settled, newest first.
func Unsettled(ctx context.Context, q pg.Q, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	return pg.Many(ctx, q, scanIntent, oneIntent+`p.booking_id = @booking and `+unsettled+` order by p.created_at desc, p.id desc limit @limit`,
		pg.Args{"booking": booking, "limit": limit})
}

// Settle marks a payment as settled. It returns false if the payment was already settled.
func Settle(ctx context.Context, tx pg.Tx, id domain.IntentID) (bool, error) {
	tag, err := tx.Exec(ctx, `update payment_intents p set settled = true
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id and not p.settled`, pg.Args{"id": id})
	if err != nil {
		return false, fmt.Errorf("settle payment: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// inTime is the condition that an account had received a part of a card payment p by a version.
const inTime = `exists (select from money_entries e where e.tenant_id = @tenant and e.livemode = @live and e.account_id = p.booking_id
	and e.currency = p.currency and e.object = p.gateway_id and e.kind = 'received' and e.version <= @version)`

// LatePayments returns the card payments of a lost booking that the gateway captured after the booking ended, or, if s does not contain
// this time, that the account received after its point.
func LatePayments(ctx context.Context, q pg.Q, k domain.MoneyKey, s domain.Settlement) ([]domain.GatewayID, error) {
	return pg.Many(ctx, q, pgx.RowTo[domain.GatewayID], `
		select p.gateway_id from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking
			and p.currency = @code and p.received > 0 and coalesce(p.succeeded_at > @at, not `+inTime+`)`, pg.Args{
		"booking": k.Booking, "code": k.Currency, "version": s.Ended.AccountVersion, "at": s.EndedAt,
	})
}

const owedColumns = `o.id, o.cause, o.subject, o.booking_id as booking, o.wanted, o.currency as code, o.account_version, o.account_returned, o.state,
	coalesce(o.remaining, o.wanted) as remaining, o.tries, o.refund_id, o.due_at, o.retry_at, o.failed_at, o.failure, o.closed_at,
	coalesce(o.closed_by, '') as closed_by, coalesce(o.closed_note, '') as note, o.version, o.created_at`

const oneOwed = `select ` + owedColumns + ` from automatic_refunds o where o.tenant_id = @tenant and o.livemode = @live and `

// PutOwed writes what is owed back, unless it was written before.
func PutOwed(ctx context.Context, tx pg.Tx, o domain.OwedRefund) error {
	_, err := tx.Exec(ctx, `
		insert into automatic_refunds (tenant_id, livemode, cause, subject, id, booking_id, wanted, currency, account_version, account_returned, due_at)
		values (@tenant, @live, @cause, @subject, @id, @booking, @wanted, @code, @version, @returned, @due)
		on conflict do nothing`, pg.Args{
		"cause": o.Cause, "subject": o.Subject, "id": o.ID, "booking": o.Booking, "wanted": o.Amount, "code": o.Code, "due": o.DueAt,
		"version": o.AccountVersion, "returned": o.AccountReturned,
	})
	if err != nil {
		return fmt.Errorf("note owed refund: %w", err)
	}
	return nil
}

// OwedDue is an owed refund that a worker must check.
type OwedDue struct {
	operation.Owner

	Cause   domain.Cause
	Subject string
}

// OwedRefundsDue returns up to limit owed refunds that a worker must check, of all tenants and modes, oldest first. It skips the
// owners in except. tx has the worker role.
func OwedRefundsDue(ctx context.Context, tx pg.Tx, now time.Time, except []operation.Owner, limit int) ([]OwedDue, error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[OwedDue], `
		select o.tenant_id, o.livemode, o.cause, o.subject from automatic_refunds o
		where o.due_at <= $3`+operation.Outside("o")+` order by o.due_at limit $4`, tenants, modes, now, limit)
}

// TakeOwed takes a due owed refund until the given time. It returns nil if another process holds it.
func TakeOwed(ctx context.Context, tx pg.Tx, due OwedDue, now, until time.Time) (*domain.OwedRefund, error) {
	found, err := pg.Many(ctx, tx, pgx.RowToStructByName[domain.OwedRefund], `update automatic_refunds o set due_at = @until
		where o.tenant_id = @tenant and o.livemode = @live and o.cause = @cause and o.subject = @subject and o.due_at <= @now
		returning `+owedColumns, pg.Args{"cause": due.Cause, "subject": due.Subject, "now": now, "until": until})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// OwedForUpdate locks the row of an owed refund. A transaction that also locks intents or refunds locks them first.
func OwedForUpdate(ctx context.Context, tx pg.Tx, id domain.OwedID) (domain.OwedRefund, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.OwedRefund], domain.ErrOwedNotFound, oneOwed+`o.id = @id for update`, pg.Args{"id": id})
}

// SaveOwed writes an owed refund that the transaction has locked. raise increments the version after a change that a person can
// see.
func SaveOwed(ctx context.Context, tx pg.Tx, o domain.OwedRefund, raise bool) error {
	failure, err := failureText(o.Failure)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update automatic_refunds o set state = @state, remaining = @remaining, tries = @tries, refund_id = @refund, due_at = @due, retry_at = @retry,
			failed_at = @failed, failure = @failure, closed_at = @closed, closed_by = nullif(@by::text, ''), closed_note = nullif(@note::text, ''),
			version = o.version + @raise::boolean::int
		where o.tenant_id = @tenant and o.livemode = @live and o.id = @id`, pg.Args{
		"id": o.ID, "state": o.State, "remaining": o.Remaining, "tries": o.Tries, "refund": o.RefundID, "due": o.DueAt, "retry": o.RetryAt,
		"failed": o.FailedAt, "failure": failure, "closed": o.ClosedAt, "by": o.ClosedBy, "note": o.Note, "raise": raise,
	})
	if err != nil {
		return fmt.Errorf("save owed refund: %w", err)
	}
	return nil
}

// WakeOwed makes the owed refund of an intent of a booking due, with the next statement, before it, because the money of a refund of the
// intent has moved. The transaction has locked the intent.
func WakeOwed(tx pg.Tx, booking domain.BookingID, intent domain.GatewayID, now time.Time) {
	pg.Queue(tx, "wake owed refunds", `update automatic_refunds o set due_at = @now
		where o.tenant_id = @tenant and o.livemode = @live and o.booking_id = @booking and o.state <> 'closed'
			and (o.cause = 'cancelled' or o.subject = @intent)`, pg.Args{"booking": booking, "intent": string(intent), "now": now})
}

// FailOwed records that a refund created for an owed refund, or a part of it, has failed. The owed refund is retried later.
func FailOwed(ctx context.Context, tx pg.Tx, id domain.OwedID, why *domain.Failure, now, again time.Time) error {
	failure, err := failureText(why)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update automatic_refunds o set failure = @failure, retry_at = @again, version = o.version + 1,
			failed_at = case when o.state = 'open' then coalesce(o.failed_at, @now) else @now end
		where o.tenant_id = @tenant and o.livemode = @live and o.id = @id and o.state <> 'closed'`,
		pg.Args{"id": id, "failure": failure, "now": now, "again": again})
	if err != nil {
		return fmt.Errorf("note failed refund: %w", err)
	}
	return nil
}

// ofOwed is the condition that an owed refund is about a card payment p: the late payment, or each one that was received before the
// booking was canceled.
const ofOwed = `p.booking_id = @booking and p.currency = @code and p.gateway_id is not null
	and case when @intent::text <> '' then p.gateway_id = @intent else ` + inTime + ` end`

func owedArgs(o domain.OwedRefund) pg.Args {
	return pg.Args{
		"id": o.ID, "booking": o.Booking, "code": o.Code, "intent": string(o.Intent()), "version": o.AccountVersion, "returned": o.AccountReturned,
	}
}

// LockOwedPayments locks all card payments of the booking of an owed refund in the order in which refunds lock them. Its row and its
// account are locked afterwards.
func LockOwedPayments(ctx context.Context, tx pg.Tx, o domain.OwedRefund) error {
	_, err := tx.Exec(ctx, `select from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking
		and p.currency = @code and p.gateway_id is not null order by p.created_at desc, p.id desc for update`, owedArgs(o))
	if err != nil {
		return fmt.Errorf("lock payments: %w", err)
	}
	return nil
}

// failedSince selects what an account had returned by a version and no longer counts: refunds of this platform, and refunds in the gateway's
// dashboard, that have failed since then.
const failedSince = `
	(select coalesce(sum(a.amount), 0) from refunds r
		join refund_allocations a on a.tenant_id = @tenant and a.livemode = @live and a.refund_id = r.id
		where r.tenant_id = @tenant and r.livemode = @live and r.booking_id = @booking and r.currency = @code
			and a.held_version <= @version and a.released_version >= @version)
	+ (select coalesce(sum(abs(f.amount)), 0) from payment_intents p
		join ledger_entries f on f.tenant_id = @tenant and f.livemode = @live and f.intent_id = p.id and f.kind = 'refund_failed'
			and f.ledger_account = 'payments' and f.money_version >= @version
		join ledger_entries l on l.tenant_id = @tenant and l.livemode = @live and l.intent_id = p.id and l.kind = 'refund'
			and l.ledger_account = 'payments' and l.money_version < @version and l.object = f.object
		where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking and p.currency = @code and not exists (
			select from refund_allocations a where a.tenant_id = @tenant and a.livemode = @live and a.intent_id = p.id and a.gateway_id = f.object))`

// OwedMoney locks the account of an owed refund and reads the state of the money. Toward a share of the booking's payments counts what the
// account returned after the booking was canceled, except for late payments, which are owed back in full. An earlier refund does not
// count, even if it fails later.
func OwedMoney(ctx context.Context, tx pg.Tx, o domain.OwedRefund) (domain.OwedMoney, error) {
	if _, err := MoneyAccountForUpdate(ctx, tx, domain.BookingMoney(o.Booking, o.Code)); err != nil {
		return domain.OwedMoney{}, err
	}
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.OwedMoney], pgx.ErrNoRows, `
		select (case when @intent::text <> '' then l.own else a.returned + a.held - @returned + `+failedSince+` - l.late end)::bigint as returned,
			l.under_way::bigint as under_way, greatest(0, a.received - a.returned - a.held)::bigint as "left"
		from money_accounts a cross join (
			select coalesce(sum(p.held) filter (where p.own), 0) as own, coalesce(sum(p.held) filter (where not p.own), 0) as late,
				coalesce(sum(p.under_way) filter (where p.own), 0) as under_way
			from (
				select greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved) + p.lost as held, `+ofOwed+` as own, (
					select sum(a.amount) from refund_allocations a where a.tenant_id = @tenant and a.livemode = @live and a.intent_id = p.id
						and a.status in ('creating', 'pending', 'requires_action')) as under_way
				from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking and p.currency = @code
					and p.gateway_id is not null) p) l
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @booking and a.currency = @code`, owedArgs(o))
}

// OwedPayments reads up to limit of the card payments of an owed refund with a refundable amount, newest first. It also returns for which
// of them a refund has failed. The transaction has locked the payments.
func OwedPayments(ctx context.Context, tx pg.Tx, o domain.OwedRefund, limit int) ([]domain.Intent, map[domain.IntentID]bool, error) {
	args := owedArgs(o)
	args["limit"] = limit
	const those = ofOwed + ` and p.received > greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved)`
	failed, err := pg.Many(ctx, tx, pgx.RowTo[domain.IntentID], `
		select p.id from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and `+those+` and exists (
			select from refund_allocations a where a.tenant_id = @tenant and a.livemode = @live and a.intent_id = p.id
				and a.status in ('refused', 'failed', 'canceled'))`, args)
	if err != nil {
		return nil, nil, fmt.Errorf("payments whose refund has failed: %w", err)
	}
	marked := make(map[domain.IntentID]bool, len(failed))
	for _, id := range failed {
		marked[id] = true
	}
	args["failed"] = failed
	list, err := pg.Many(ctx, tx, scanIntent, oneIntent+those+`
		order by p.disputed or p.id = any(@failed), p.created_at desc, p.id desc limit @limit`, args)
	return list, marked, err
}

// OwedRefunds reads one page of the owed refunds that could not be returned, newest first.
func OwedRefunds(ctx context.Context, q pg.Q, r page.Request) (page.Rows[domain.OwedRefund], error) {
	w := &page.Where{}
	w.Add(`o.tenant_id = @tenant and o.livemode = @live and o.state = 'open' and o.failed_at is not null`)
	tail, args := w.Page(r, "o")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.OwedRefund], `select `+owedColumns+` from automatic_refunds o `+tail, args...)
}

// CountOwedRefunds returns the number of owed refunds that could not be returned.
func CountOwedRefunds(ctx context.Context, q pg.Q) (int, error) {
	return pg.One(ctx, q, pgx.RowTo[int], pgx.ErrNoRows, `select count(*)::int from automatic_refunds o
		where o.tenant_id = @tenant and o.livemode = @live and o.state = 'open' and o.failed_at is not null`, pg.Args{})
}

// OwedRefund reads an owed refund, or returns domain.ErrOwedNotFound.
func OwedRefund(ctx context.Context, q pg.Q, id domain.OwedID) (domain.OwedRefund, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.OwedRefund], domain.ErrOwedNotFound, oneOwed+`o.id = @id`, pg.Args{"id": id})
}
