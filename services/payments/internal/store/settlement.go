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

// Settle marks a payment as settled. It returns false if the payment was already settled.
func Settle(ctx context.Context, tx pg.Tx, id domain.IntentID) (bool, error) {
	n, err := pg.Affect(ctx, tx, "settle payment", `update payment_intents p set settled = true
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id and not p.settled`, pg.Args{"id": id})
	return n == 1, err
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

var owedRefunds = pg.NewTable("automatic_refunds", "o", domain.ErrOwedNotFound, func(o *domain.OwedRefund) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{
			"id", &o.ID, "cause", &o.Cause, "subject", &o.Subject, "booking_id", &o.Booking, "wanted", &o.Amount, "currency", &o.Code,
			"account_version", &o.AccountVersion, "account_returned", &o.AccountReturned,
		},
		Values: pg.F{
			"state", &o.State, "tries", &o.Tries, "refund_id", &o.RefundID, "due_at", &o.DueAt, "retry_at", &o.RetryAt, "failed_at", &o.FailedAt,
			"failure", &o.Failure, "closed_at", &o.ClosedAt, "closed_by", pg.Null(&o.ClosedBy), "closed_note", pg.Null(&o.Note),
		},
		Written: pg.F{"remaining", o.Remaining},
		Read:    pg.F{"coalesce(o.remaining, o.wanted) as remaining", &o.Remaining, "version", &o.Version, "created_at", &o.CreatedAt},
	}
})

// PutOwed writes what is owed back, unless it was written before.
func PutOwed(ctx context.Context, tx pg.Tx, o domain.OwedRefund) error {
	return pg.Exec(ctx, tx, "note owed refund", `
		insert into automatic_refunds (tenant_id, livemode, cause, subject, id, booking_id, wanted, currency, account_version, account_returned, due_at)
		values (@tenant, @live, @cause, @subject, @id, @booking_id, @wanted, @currency, @account_version, @account_returned, @due_at)
		on conflict do nothing`, owedRefunds.Args(o))
}

// OwedDue is an owed refund that a worker must check.
type OwedDue struct {
	operation.Owner

	Cause   domain.Cause
	Subject string
}

// OwedRefundsDue finds owed refunds that a worker must check.
var OwedRefundsDue = operation.FindDue[OwedDue](
	`select o.tenant_id, o.livemode, o.cause, o.subject from automatic_refunds o where o.due_at <= $3`, "o", "o.due_at")

// TakeOwed takes a due owed refund until the given time. It returns nil if another process holds it.
func TakeOwed(ctx context.Context, tx pg.Tx, due OwedDue, now, until time.Time) (*domain.OwedRefund, error) {
	return pg.First(ctx, tx, owedRefunds.Scan, `update automatic_refunds o set due_at = @until
		where o.tenant_id = @tenant and o.livemode = @live and o.cause = @cause and o.subject = @subject and o.due_at <= @now
		returning `+owedRefunds.Columns, pg.Args{"cause": due.Cause, "subject": due.Subject, "now": now, "until": until})
}

// OwedForUpdate locks the row of an owed refund. A transaction that also locks intents or refunds locks them first.
func OwedForUpdate(ctx context.Context, tx pg.Tx, id domain.OwedID) (domain.OwedRefund, error) {
	return owedRefunds.Get(ctx, tx, id, "for update")
}

// SaveOwed writes an owed refund that the transaction has locked. raise increments the version after a change that a person can
// see.
func SaveOwed(ctx context.Context, tx pg.Tx, o domain.OwedRefund, raise bool) error {
	args := owedRefunds.Args(o)
	args["raise"] = raise
	return pg.Exec(ctx, tx, "save owed refund", owedRefunds.UpdateWith(`version = o.version + @raise::boolean::int`), args)
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
	return pg.Exec(ctx, tx, "note failed refund", `update automatic_refunds o set failure = @failure, retry_at = @again, version = o.version + 1,
			failed_at = case when o.state = 'open' then coalesce(o.failed_at, @now) else @now end
		where o.tenant_id = @tenant and o.livemode = @live and o.id = @id and o.state <> 'closed'`,
		pg.Args{"id": id, "failure": why, "now": now, "again": again})
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
	return pg.Exec(ctx, tx, "lock payments", `select from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking
		and p.currency = @code and p.gateway_id is not null order by p.created_at desc, p.id desc for update`, owedArgs(o))
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
	list, err := intents.Many(ctx, tx, those+`
		order by p.disputed or p.id = any(@failed), p.created_at desc, p.id desc limit @limit`, args)
	return list, marked, err
}

// OwedRefunds reads one page of the owed refunds that could not be returned, newest first.
func OwedRefunds(ctx context.Context, q pg.Q, r page.Request) (page.Rows[domain.OwedRefund], error) {
	w := &page.Where{}
	w.Add(`o.tenant_id = @tenant and o.livemode = @live and o.state = 'open' and o.failed_at is not null`)
	tail, args := w.Page(r, "o")
	return page.Read(ctx, q, r, owedRefunds.Scan, owedRefunds.Select+tail, args...)
}

// CountOwedRefunds returns the number of owed refunds that could not be returned.
func CountOwedRefunds(ctx context.Context, q pg.Q) (int, error) {
	return pg.One(ctx, q, pgx.RowTo[int], pgx.ErrNoRows, `select count(*)::int from automatic_refunds o
		where o.tenant_id = @tenant and o.livemode = @live and o.state = 'open' and o.failed_at is not null`, pg.Args{})
}

// OwedRefund reads an owed refund, or returns domain.ErrOwedNotFound.
func OwedRefund(ctx context.Context, q pg.Q, id domain.OwedID) (domain.OwedRefund, error) {
	return owedRefunds.Get(ctx, q, id, "")
}
