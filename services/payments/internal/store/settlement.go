package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// unsettled selects the successful payments for which it is not yet decided whether they are refunded because the booking is lost.
const unsettled = `p.gateway_id is not null and p.status = 'succeeded' and not p.settled`

// refundedElsewhere returns the expression for what others have refunded so far of the payments of a booking, in the form of
// booking_settlements.elsewhere.
func refundedElsewhere(booking string) string {
	return `coalesce((select json_object_agg(p.gateway_id, p.refunded_elsewhere) from payment_intents p
		where p.tenant_id = ` + booking + `.tenant_id and p.livemode = ` + booking + `.livemode and p.booking_id = ` + booking + `.booking_id
			and p.gateway_id is not null and p.refunded_elsewhere > 0), '{}')`
}

// PutSettlements writes canceled or expired bookings of any tenants that have an unsettled payment. tx has the worker role, and has
// already written the state of these bookings: see HeldStatus.
func PutSettlements(ctx context.Context, tx pg.Tx, lost []BookingKey, now time.Time) error {
	tenants, modes, list := make([][16]byte, len(lost)), make([]bool, len(lost)), make([][16]byte, len(lost))
	for i, b := range lost {
		tenants[i], modes[i], list[i] = b.Tenant.UUID(), b.Livemode, b.ID.UUID()
	}
	_, err := tx.Exec(ctx, `
		insert into booking_settlements as s (tenant_id, livemode, booking_id, due_at, elsewhere)
		select l.tenant_id, l.livemode, l.booking_id, $4, `+refundedElsewhere("l")+` from unnest($1::uuid[], $2::boolean[], $3::uuid[]) l (tenant_id, livemode, booking_id)
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
		insert into booking_settlements as s (tenant_id, livemode, booking_id, due_at, elsewhere)
		select l.tenant_id, l.livemode, l.booking_id, @now, `+refundedElsewhere("l")+`
		from (select @tenant::uuid, @live::boolean, @id::uuid) l (tenant_id, livemode, booking_id)
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

// Settling is a booking whose payments are being settled.
type Settling struct {
	Tries   int       // how often it was taken; 0: another process holds it or has settled it
	NotedAt time.Time // when this service learned that it was canceled or had expired
	// Elsewhere is what others had refunded of its payments by then, by the gateway's ids; nil: not known.
	Elsewhere json.RawMessage
}

// TakeSettlement takes a booking until the given time.
func TakeSettlement(ctx context.Context, tx pg.Tx, id domain.BookingID, now, until time.Time) (Settling, error) {
	found, err := pg.Many(ctx, tx, pgx.RowToStructByName[Settling], `update booking_settlements s set due_at = @until, tries = s.tries + 1
		where s.tenant_id = @tenant and s.livemode = @live and s.booking_id = @id and s.due_at <= @now returning s.tries, s.noted_at, s.elsewhere`,
		pg.Args{"id": id, "now": now, "until": until})
	if err != nil || len(found) == 0 {
		return Settling{}, err
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

const owedColumns = `o.id, o.cause, o.subject, o.booking_id as booking, o.wanted, coalesce(o.currency, '') as code, o.since, o.elsewhere, o.state,
	coalesce(o.remaining, o.wanted) as remaining, o.tries, o.refund_id, o.due_at, o.retry_at, o.failed_at, o.failure, o.closed_at,
	coalesce(o.closed_by, '') as closed_by, coalesce(o.closed_note, '') as note, o.version, o.created_at`

const oneOwed = `select ` + owedColumns + ` from automatic_refunds o where o.tenant_id = @tenant and o.livemode = @live and `

// PutOwed writes what is owed back of some payments, unless it was written before. elsewhere contains what others had refunded of
// them before the booking was lost. This amount does not count if the owed refund is a share of the booking's payments. If
// elsewhere is nil, PutOwed uses what others have refunded by now.
func PutOwed(ctx context.Context, tx pg.Tx, o domain.OwedRefund, payments []domain.GatewayID, elsewhere json.RawMessage) error {
	_, err := tx.Exec(ctx, `
		insert into automatic_refunds (tenant_id, livemode, cause, subject, id, booking_id, wanted, currency, since, due_at, elsewhere)
		values (@tenant, @live, @cause, @subject, @id, @booking, @wanted, @code, @since, @due, (
			select coalesce(sum(case when @elsewhere::json is null then p.refunded_elsewhere
				else coalesce((@elsewhere::json ->> p.gateway_id)::bigint, 0) end), 0) from payment_intents p
			where p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = any(@payments)))
		on conflict do nothing`, pg.Args{
		"cause": o.Cause, "subject": o.Subject, "id": o.ID, "booking": o.Booking, "wanted": o.Amount, "code": o.Code, "since": o.Since, "due": o.DueAt,
		"payments": gatewayIDs(payments), "elsewhere": pg.JSONText(elsewhere),
	})
	if err != nil {
		return fmt.Errorf("note owed refund: %w", err)
	}
	return nil
}

// AdoptOwed completes an owed refund that the previous version of this service wrote, marks the refund created for it, and returns
// it. Another process may have done so. Refunds by others always count, so that nothing is returned twice.
func AdoptOwed(ctx context.Context, tx pg.Tx, o domain.OwedRefund) (domain.OwedRefund, error) {
	o.ID, o.Since = ids.New[domain.OwedPrefix](), o.CreatedAt
	if o.Cause == domain.PaidLate {
		o.Since = domain.AllRefunds
	}
	if !o.RefundID.IsZero() { // locked before the row, as in all transactions
		found, err := pg.Many(ctx, tx, pgx.RowTo[domain.OwedID], `update refunds r set owed_id = coalesce(r.owed_id, @id)
			where r.tenant_id = @tenant and r.livemode = @live and r.id = @refund returning r.owed_id`, pg.Args{"id": o.ID, "refund": o.RefundID})
		if err != nil {
			return o, fmt.Errorf("mark the refund that was created: %w", err)
		}
		if len(found) > 0 {
			o.ID = found[0]
		}
	}
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.OwedRefund], domain.ErrOwedNotFound, `
		update automatic_refunds o set id = coalesce(o.id, @id), booking_id = @booking, currency = @code, since = @since
		where o.tenant_id = @tenant and o.livemode = @live and o.cause = @cause and o.subject = @subject returning `+owedColumns, pg.Args{
		"cause": o.Cause, "subject": o.Subject, "id": o.ID, "booking": o.Booking, "code": o.Code, "since": o.Since,
	})
}

func gatewayIDs(list []domain.GatewayID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = string(id)
	}
	return out
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

// WakeOwed makes the owed refund of an intent of a booking due, because the money of a refund of the intent has moved. The
// transaction has locked the intent.
func WakeOwed(ctx context.Context, tx pg.Tx, booking domain.BookingID, intent domain.GatewayID, now time.Time) error {
	_, err := tx.Exec(ctx, `update automatic_refunds o set due_at = @now
		where o.tenant_id = @tenant and o.livemode = @live and o.booking_id = @booking and o.state <> 'closed'
			and (o.cause = 'cancelled' or o.subject = @intent)`, pg.Args{"booking": booking, "intent": string(intent), "now": now})
	if err != nil {
		return fmt.Errorf("wake owed refunds: %w", err)
	}
	return nil
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

// OwedMoney locks the given payments in the order in which refunds lock them, and reads their state since a time. After a refund of
// this platform fails, the amount refunded by others is too high rather than too low until the intent is read. Nothing is therefore
// returned twice.
// What was returned outside the gateway counts towards the share of the refund rules.
func OwedMoney(ctx context.Context, tx pg.Tx, o domain.OwedRefund, payments []domain.GatewayID) (domain.OwedMoney, error) {
	args := pg.Args{"payments": gatewayIDs(payments), "since": o.Since, "cancelled": o.Cause == domain.BookingCancelled, "booking": o.Booking, "code": o.Code}
	const those = `from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = any(@payments)`
	if _, err := tx.Exec(ctx, `select `+those+` order by p.created_at desc, p.id desc for update`, args); err != nil {
		return domain.OwedMoney{}, fmt.Errorf("lock payments: %w", err)
	}
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.OwedMoney], pgx.ErrNoRows, `
		select coalesce(sum(a.held), 0)::bigint + (
				select coalesce(sum(e.amount), 0)::bigint from money_entries e
				where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @booking and e.currency = @code and e.kind = 'returned'
					and e.method <> 'card' and e.at >= @since and @cancelled) as returned,
			coalesce(sum(a.under_way), 0)::bigint as under_way,
			coalesce(sum(l.elsewhere), 0)::bigint as elsewhere
		from (select p.id, greatest(p.refunded_elsewhere, p.refunded - p.refund_reserved) as elsewhere `+those+`) l
		left join lateral (
			select sum(a.amount) filter (where a.status in ('creating', 'pending', 'requires_action', 'succeeded')) as held,
				sum(a.amount) filter (where a.status in ('creating', 'pending', 'requires_action')) as under_way
			from refund_allocations a join refunds r on r.tenant_id = a.tenant_id and r.livemode = a.livemode and r.id = a.refund_id
			where a.tenant_id = @tenant and a.livemode = @live and r.tenant_id = @tenant and r.livemode = @live and a.intent_id = l.id
				and r.created_at >= @since) a on true`, args)
}

// OwedPayments reads up to limit of the given payments with a refundable amount, newest first. It also returns for which of them a
// refund since a time has failed. The transaction has locked the payments.
func OwedPayments(ctx context.Context, tx pg.Tx, payments []domain.GatewayID, since time.Time, limit int) ([]domain.Intent, map[domain.IntentID]bool, error) {
	args := pg.Args{"payments": gatewayIDs(payments), "since": since, "limit": limit}
	const those = `p.gateway_id = any(@payments) and p.received > greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved)`
	failed, err := pg.Many(ctx, tx, pgx.RowTo[domain.IntentID], `
		select p.id from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and `+those+` and exists (
			select from refund_allocations a join refunds r on r.tenant_id = a.tenant_id and r.livemode = a.livemode and r.id = a.refund_id
			where a.tenant_id = @tenant and a.livemode = @live and r.tenant_id = @tenant and r.livemode = @live and a.intent_id = p.id
				and a.status in ('refused', 'failed', 'canceled') and r.created_at >= @since)`, args)
	if err != nil {
		return nil, nil, fmt.Errorf("payments whose refund has failed: %w", err)
	}
	marked := make(map[domain.IntentID]bool, len(failed))
	for _, id := range failed {
		marked[id] = true
	}
	list, err := pg.Many(ctx, tx, scanIntent, oneIntent+those+`
		order by p.id = any(@failed), p.created_at desc, p.id desc limit @limit`,
		pg.Args{"payments": args["payments"], "failed": failed, "limit": limit})
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
