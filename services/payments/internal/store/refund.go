package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// refundColumns also contains the allocations, so that one statement reads both as of the same instant.
const refundColumns = `r.id, r.status, r.shown, r.amount, r.currency, r.reason, r.method, r.reference, r.booking_id, r.customer_id, coalesce(r.intent, ''), r.metadata, r.version,
	r.created_at, r.updated_at, r.leased_until, r.owed_id, r.credit_note_id,
	(select coalesce(json_agg(json_build_object('id', a.id, 'intent_id', a.intent_id, 'intent', p.gateway_id, 'amount', a.amount, 'status', a.status,
			'gateway_id', coalesce(a.gateway_id, ''), 'failure', a.failure, 'attempt', a.attempt, 'attempted_at', a.attempted_at,
			'applied', a.applied) order by a.position), '[]')
		from refund_allocations a join payment_intents p on p.tenant_id = a.tenant_id and p.livemode = a.livemode and p.id = a.intent_id
		where a.tenant_id = @tenant and a.livemode = @live and p.tenant_id = @tenant and p.livemode = @live and a.refund_id = r.id)`

const oneRefund = `select ` + refundColumns + ` from refunds r where r.tenant_id = @tenant and r.livemode = @live and `

// allocationRow is an allocation in the JSON of refundColumns.
type allocationRow struct {
	ID          string              `json:"id"` // a uuid
	IntentID    string              `json:"intent_id"`
	Intent      domain.GatewayID    `json:"intent"`
	Amount      int64               `json:"amount"`
	Status      domain.RefundStatus `json:"status"`
	GatewayID   string              `json:"gateway_id"`
	Failure     *domain.Failure     `json:"failure"`
	Attempt     int32               `json:"attempt"`
	AttemptedAt time.Time           `json:"attempted_at"`
	Applied     int64               `json:"applied"`
}

func (row allocationRow) allocation() (domain.Allocation, error) {
	a := domain.Allocation{
		Intent: row.Intent, Minor: row.Amount, Status: row.Status, GatewayID: row.GatewayID, Failure: row.Failure, Attempt: row.Attempt,
		AttemptedAt: row.AttemptedAt, Applied: row.Applied,
	}
	if err := a.ID.Scan(row.ID); err != nil {
		return domain.Allocation{}, err
	}
	return a, a.IntentID.Scan(row.IntentID)
}

func scanRefund(row pgx.CollectableRow) (domain.Refund, error) {
	var r domain.Refund
	var raw []byte
	err := row.Scan(&r.ID, &r.Status, &r.Shown, &r.Amount.Minor, &r.Amount.Currency, &r.Reason, &r.Method, &r.Reference, &r.BookingID, &r.CustomerID, &r.Intent, &r.Metadata, &r.Version,
		&r.CreatedAt, &r.UpdatedAt, &r.Lease.Until, &r.Owed, &r.CreditNote, &raw)
	if err != nil {
		return domain.Refund{}, fmt.Errorf("scan refund: %w", err)
	}
	var rows []allocationRow
	if err := json.Unmarshal(raw, &rows); err != nil {
		return domain.Refund{}, fmt.Errorf("allocations of %s: %w", r.ID, err)
	}
	for _, one := range rows {
		a, err := one.allocation()
		if err != nil {
			return domain.Refund{}, fmt.Errorf("allocation of %s: %w", r.ID, err)
		}
		r.Allocations = append(r.Allocations, a)
	}
	return r, nil
}

// Refund reads a refund that is shown, or returns domain.ErrRefundNotFound.
func Refund(ctx context.Context, q pg.Q, id domain.RefundID) (domain.Refund, error) {
	return pg.One(ctx, q, scanRefund, domain.ErrRefundNotFound, oneRefund+`r.shown and r.id = @id`, pg.Args{"id": id})
}

// RefundForUpdate locks the row of a refund, shown or not, until the transaction ends. A transaction that also locks an intent
// locks the intent first.
func RefundForUpdate(ctx context.Context, tx pg.Tx, id domain.RefundID) (domain.Refund, error) {
	if err := lockRefund(ctx, tx, id); err != nil {
		return domain.Refund{}, err
	}
	return pg.One(ctx, tx, scanRefund, domain.ErrRefundNotFound, oneRefund+`r.id = @id`, pg.Args{"id": id})
}

// lockRefund locks the row in a separate statement, so that the allocations are read when the lock is held.
func lockRefund(ctx context.Context, tx pg.Tx, id domain.RefundID) error {
	_, err := tx.Exec(ctx, `select from refunds r where r.tenant_id = @tenant and r.livemode = @live and r.id = @id for update`, pg.Args{"id": id})
	if err != nil {
		return fmt.Errorf("lock refund: %w", err)
	}
	return nil
}

// IntentsToRefund locks and reads up to limit intents with a refundable amount, newest first. They are those of a booking, or only
// the named one.
func IntentsToRefund(ctx context.Context, tx pg.Tx, intent domain.GatewayID, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	which := `p.booking_id = @booking`
	if intent != "" {
		which = `p.gateway_id = @gateway`
	}
	return pg.Many(ctx, tx, scanIntent, oneIntent+which+` and p.gateway_id is not null
			and p.received > greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved)
		order by p.created_at desc, p.id desc limit @limit for update`,
		pg.Args{"gateway": intent, "booking": booking, "limit": limit})
}

// NamedIntents locks and reads the intents of a booking that are among the named ones and have a refundable amount, newest first.
func NamedIntents(ctx context.Context, tx pg.Tx, booking domain.BookingID, named []domain.GatewayID) ([]domain.Intent, error) {
	return pg.Many(ctx, tx, scanIntent, oneIntent+`p.booking_id = @booking and p.gateway_id = any(@named::text[])
			and p.received > greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved)
		order by p.created_at desc, p.id desc limit @limit for update`,
		pg.Args{"booking": booking, "named": named, "limit": domain.MaxAllocations})
}

// RefundOfNote reads the refund of a credit note, shown or not, or returns domain.ErrRefundNotFound.
func RefundOfNote(ctx context.Context, q pg.Q, note domain.CreditNoteID) (domain.Refund, error) {
	return pg.One(ctx, q, scanRefund, domain.ErrRefundNotFound, oneRefund+`r.credit_note_id = @note`, pg.Args{"note": note})
}

// CustomerOf returns the customer of a booking that this service knows, or domain.ErrBookingNotFound.
func CustomerOf(ctx context.Context, q pg.Q, id domain.BookingID) (domain.CustomerID, error) {
	return pg.One(ctx, q, pgx.RowTo[domain.CustomerID], domain.ErrBookingNotFound,
		`select b.customer_id from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`, pg.Args{"id": id})
}

// refundMetadata is the table of the metadata pairs by which lists are filtered.
var refundMetadata = pg.MetadataTable{Name: "refund_metadata", Owner: "refund_id"}

// InsertRefund writes a new refund with its allocations before the gateway is called. The transaction has locked their intents,
// whose money the refund reserves.
func InsertRefund(ctx context.Context, tx pg.Tx, r domain.Refund) (domain.Refund, error) {
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], pgx.ErrNoRows, `
		insert into refunds as r (tenant_id, livemode, id, status, shown, amount, currency, reason, method, reference, booking_id, customer_id, intent, metadata,
			leased_until, owed_id, credit_note_id, created_at, updated_at)
		values (@tenant, @live, @id, @status, @shown, @amount, @currency, @reason, @method, @reference, @booking, @customer, nullif(@intent::text, ''), @metadata,
			@leased_until, @owed, @credit_note, clock_timestamp(), clock_timestamp())
		returning r.version, r.created_at, r.updated_at`, refundArgs(r))
	if err != nil {
		return domain.Refund{}, fmt.Errorf("insert refund: %w", err)
	}
	r.Version, r.CreatedAt, r.UpdatedAt = at.Version, at.CreatedAt, at.UpdatedAt
	b := &pgx.Batch{}
	refundMetadata.QueueInsert(b, r.ID, r.Metadata)
	for i, a := range r.Allocations {
		queueReserve(b, a.IntentID, a.Minor)
		b.Queue(`insert into refund_allocations (tenant_id, livemode, refund_id, position, id, intent_id, amount, status, attempt, attempted_at, held_version)
			values (@tenant, @live, @refund, @position, @id, @intent, @amount, @status, @attempt, @attempted_at, (`+moneyVersion+`))`, pg.Args{
			"refund": r.ID, "position": i, "id": a.ID, "intent": a.IntentID, "amount": a.Minor, "status": a.Status, "attempt": a.Attempt,
			"attempted_at": a.AttemptedAt, "booking": r.BookingID, "currency": r.Amount.Currency,
		})
	}
	if err := sendSome(ctx, tx, b); err != nil {
		return domain.Refund{}, backed(fmt.Errorf("insert allocations: %w", err))
	}
	return r, nil
}

func refundArgs(r domain.Refund) pg.Args {
	return pg.Args{
		"id": r.ID, "status": r.Status, "amount": r.Amount.Minor, "currency": r.Amount.Currency, "reason": r.Reason, "booking": r.BookingID,
		"intent": string(r.Intent), "metadata": pg.JSONText(r.Metadata), "leased_until": r.Lease.Until, "shown": r.Shown, "owed": r.Owed,
		"credit_note": r.CreditNote, "method": r.Method, "reference": r.Reference, "customer": r.CustomerID,
	}
}

// Reserve changes the amount that a part of a refund reserves of its intent, which the transaction has locked, as the gateway has reported
// it. It locks the account.
func Reserve(ctx context.Context, tx pg.Tx, a domain.Allocation, k domain.MoneyKey, minor int64) error {
	b := &pgx.Batch{}
	b.Queue(`update refund_allocations a set released_version = case when @minor::bigint < 0 then (`+moneyVersion+` for update) end
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id`,
		pg.Args{"id": a.ID, "minor": minor, "booking": k.Booking, "currency": k.Currency})
	b.Queue(`select set_config('app.reported', 'true', true)`) // more is no decision: the gateway has made a failed refund after all
	queueReserve(b, a.IntentID, minor)
	b.Queue(`select set_config('app.reported', '', true)`)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	return nil
}

func queueReserve(b *pgx.Batch, id domain.IntentID, minor int64) {
	b.Queue(`update payment_intents p set refund_reserved = p.refund_reserved + @minor
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": id, "minor": minor})
}

// LeaseRefund writes the lease of the calls of a refund.
func LeaseRefund(ctx context.Context, tx pg.Tx, r domain.Refund) error {
	_, err := tx.Exec(ctx, `update refunds r set leased_until = @leased_until
		where r.tenant_id = @tenant and r.livemode = @live and r.id = @id`, refundArgs(r))
	if err != nil {
		return fmt.Errorf("lease refund: %w", err)
	}
	return nil
}

// UpdateRefund writes the state of a refund that the transaction has locked, and the state of one of its allocations. It increments
// the version after a visible change of a refund that was already shown.
func UpdateRefund(ctx context.Context, tx pg.Tx, r domain.Refund, a domain.Allocation, raise, visible bool) (domain.Refund, error) {
	failure, err := failureText(a.Failure)
	if err != nil {
		return domain.Refund{}, err
	}
	_, err = tx.Exec(ctx, `
		update refund_allocations a set status = @status, gateway_id = nullif(@gateway::text, ''), failure = @failure, attempt = @attempt,
			attempted_at = @attempted_at, applied = @applied
		where a.tenant_id = @tenant and a.livemode = @live and a.refund_id = @refund and a.id = @id`, pg.Args{
		"refund": r.ID, "id": a.ID, "status": a.Status, "gateway": a.GatewayID, "failure": failure, "attempt": a.Attempt,
		"attempted_at": a.AttemptedAt, "applied": a.Applied,
	})
	if err != nil {
		return domain.Refund{}, fmt.Errorf("update allocation: %w", err)
	}
	args := refundArgs(r)
	args["raise"], args["visible"] = raise, visible
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], domain.ErrRefundNotFound, `
		update refunds r set status = @status, shown = @shown, leased_until = @leased_until, version = r.version + @raise::boolean::int,
			updated_at = case when @visible::boolean then clock_timestamp() else r.updated_at end
		where r.tenant_id = @tenant and r.livemode = @live and r.id = @id
		returning r.version, r.created_at, r.updated_at`, args)
	if err != nil {
		return domain.Refund{}, fmt.Errorf("update refund: %w", err)
	}
	r.Version, r.UpdatedAt = at.Version, at.UpdatedAt
	return r, nil
}

// failureText returns a failure as a parameter of a json column; nil becomes null.
func failureText(f *domain.Failure) (*string, error) {
	if f == nil {
		return nil, nil
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("failure: %w", err)
	}
	return pg.JSONText(raw), nil
}

// BeginAttempt writes a new attempt of an allocation.
func BeginAttempt(ctx context.Context, tx pg.Tx, a domain.Allocation) error {
	_, err := tx.Exec(ctx, `update refund_allocations a set attempt = @attempt, attempted_at = @attempted_at
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id`,
		pg.Args{"id": a.ID, "attempt": a.Attempt, "attempted_at": a.AttemptedAt})
	if err != nil {
		return fmt.Errorf("begin attempt: %w", err)
	}
	return nil
}

// RefundOfAllocation finds the refund of an allocation of an intent, or returns domain.ErrRefundNotFound.
func RefundOfAllocation(ctx context.Context, q pg.Q, intent domain.IntentID, id domain.AllocationID) (domain.RefundID, error) {
	return pg.One(ctx, q, pgx.RowTo[domain.RefundID], domain.ErrRefundNotFound, `select a.refund_id from refund_allocations a
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id and a.intent_id = @intent`, pg.Args{"id": id, "intent": intent})
}

// OpenRefunds reads up to limit unfinished allocations of refunds of an intent, in the order of their ids after the given one.
func OpenRefunds(ctx context.Context, q pg.Q, intent domain.IntentID, after domain.AllocationID, limit int) ([]OpenRefund, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[OpenRefund], `select a.id, a.gateway_id from refund_allocations a
		where a.tenant_id = @tenant and a.livemode = @live and a.intent_id = @intent and a.status in ('pending', 'requires_action')
			and (@after::uuid is null or a.id > @after)
		order by a.id limit @limit`, pg.Args{"intent": intent, "after": after, "limit": limit})
}

// OpenRefund is an allocation that has not ended at the gateway.
type OpenRefund struct {
	ID        domain.AllocationID
	GatewayID string // re_…
}

// LeaveRefund writes when to resume the calls of a refund, unless another process has taken them.
func LeaveRefund(ctx context.Context, tx pg.Tx, r domain.Refund, until time.Time) error {
	args := refundArgs(r)
	args["until"] = until
	_, err := tx.Exec(ctx, `update refunds r set leased_until = @until
		where r.tenant_id = @tenant and r.livemode = @live and r.id = @id and r.leased_until = @leased_until`, args)
	if err != nil {
		return fmt.Errorf("leave refund: %w", err)
	}
	return nil
}

// RefundDue is a refund whose calls must be resumed.
type RefundDue struct {
	operation.Owner

	ID domain.RefundID
}

// RefundsLeft returns up to limit refunds of all tenants and modes whose calls a process has abandoned, oldest first. It skips the
// owners in except. tx has the worker role.
func RefundsLeft(ctx context.Context, tx pg.Tx, real time.Time, except []operation.Owner, limit int) ([]RefundDue, error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[RefundDue], `
		select r.tenant_id, r.livemode, r.id from refunds r
		where r.leased_until is not null and r.leased_until <= $3`+operation.Outside("r")+`
		order by r.leased_until, r.id limit $4`, tenants, modes, real, limit)
}
