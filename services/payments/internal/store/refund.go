package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// refunds also reads the allocations, so that one statement reads both as of the same instant.
var refunds = pg.NewTable("refunds", "r", domain.ErrRefundNotFound, func(r *domain.Refund) pg.Fields {
	var rows []allocationRow
	return pg.Fields{
		Fixed: pg.F{
			"id", &r.ID, "amount", &r.Amount.Minor, "currency", &r.Amount.Currency, "reason", &r.Reason, "method", &r.Method, "reference", &r.Reference,
			"booking_id", &r.BookingID, "customer_id", &r.CustomerID, "intent", pg.Null(&r.Intent), "metadata", pg.Raw(&r.Metadata), "owed_id", &r.Owed,
			"credit_note_id", &r.CreditNote,
		},
		Values: pg.F{"status", &r.Status, "shown", &r.Shown, "leased_until", &r.Lease.Until},
		Read: pg.F{
			"version", &r.Version, "created_at", &r.CreatedAt, "updated_at", &r.UpdatedAt,
			`(select coalesce(json_agg(json_build_object('id', a.id, 'intent_id', a.intent_id, 'intent', p.gateway_id, 'amount', a.amount, 'status', a.status,
					'gateway_id', coalesce(a.gateway_id, ''), 'failure', a.failure, 'attempt', a.attempt, 'attempted_at', a.attempted_at,
					'applied', a.applied) order by a.position), '[]')
				from refund_allocations a join payment_intents p on p.tenant_id = a.tenant_id and p.livemode = a.livemode and p.id = a.intent_id
				where a.tenant_id = @tenant and a.livemode = @live and p.tenant_id = @tenant and p.livemode = @live and a.refund_id = r.id) as allocations`,
			&rows,
		},
		Done: func() error {
			for _, one := range rows {
				a, err := one.allocation()
				if err != nil {
					return err
				}
				r.Allocations = append(r.Allocations, a)
			}
			return nil
		},
	}
})

var allocations = pg.NewTable("refund_allocations", "a", nil, func(a *domain.Allocation) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &a.ID, "intent_id", &a.IntentID, "amount", &a.Minor},
		Values: pg.F{
			"status", &a.Status, "gateway_id", pg.Null(&a.GatewayID), "failure", &a.Failure, "attempt", &a.Attempt, "attempted_at", &a.AttemptedAt,
			"applied", &a.Applied,
		},
	}
})

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

// Refund reads a refund that is shown, or returns domain.ErrRefundNotFound.
func Refund(ctx context.Context, q pg.Q, id domain.RefundID) (domain.Refund, error) {
	return refunds.One(ctx, q, `r.shown and r.id = @id`, pg.Args{"id": id})
}

// RefundForUpdate locks the row of a refund, shown or not, until the transaction ends. A transaction that also locks an intent
// locks the intent first.
func RefundForUpdate(ctx context.Context, tx pg.Tx, id domain.RefundID) (domain.Refund, error) {
	// A separate statement takes the lock, so that the allocations are read when it is held.
	pg.Queue(tx, "lock refund", `select from refunds r where r.tenant_id = @tenant and r.livemode = @live and r.id = @id for update`, pg.Args{"id": id})
	return refunds.Get(ctx, tx, id, "")
}

// IntentsToRefund locks and reads up to limit intents with a refundable amount, newest first. They are those of a booking, or only
// the named one.
func IntentsToRefund(ctx context.Context, tx pg.Tx, intent domain.GatewayID, booking domain.BookingID, limit int) ([]domain.Intent, error) {
	which := `p.booking_id = @booking`
	if intent != "" {
		which = `p.gateway_id = @gateway`
	}
	return intents.Many(ctx, tx, which+` and p.gateway_id is not null
			and p.received > greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved)
		order by p.created_at desc, p.id desc limit @limit for update`,
		pg.Args{"gateway": intent, "booking": booking, "limit": limit})
}

// NamedIntents locks and reads the intents of a booking that are among the named ones and have a refundable amount, newest first.
func NamedIntents(ctx context.Context, tx pg.Tx, booking domain.BookingID, named []domain.GatewayID) ([]domain.Intent, error) {
	return intents.Many(ctx, tx, `p.booking_id = @booking and p.gateway_id = any(@named::text[])
			and p.received > greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved)
		order by p.created_at desc, p.id desc limit @limit for update`,
		pg.Args{"booking": booking, "named": named, "limit": domain.MaxAllocations})
}

// RefundOfNote reads the refund of a credit note, shown or not, or returns domain.ErrRefundNotFound.
func RefundOfNote(ctx context.Context, q pg.Q, note domain.CreditNoteID) (domain.Refund, error) {
	return refunds.One(ctx, q, `r.credit_note_id = @note`, pg.Args{"note": note})
}

// CustomerOf returns the customer of a booking that this service knows, or domain.ErrBookingNotFound.
func CustomerOf(ctx context.Context, q pg.Q, id domain.BookingID) (domain.CustomerID, error) {
	return pg.One(ctx, q, pgx.RowTo[domain.CustomerID], domain.ErrBookingNotFound,
		`select b.customer_id from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`, pg.Args{"id": id})
}

// refundMetadata is the table of the metadata pairs by which lists are filtered.
var refundMetadata = pg.MetadataTable{Name: "refund_metadata", Owner: "refund_id"}

var (
	insertRefund = refunds.InsertNow("") + refunds.Stamp
	updateRefund = refunds.UpdateWith(`version = r.version + @raise::boolean::int,
		updated_at = case when @visible::boolean then clock_timestamp() else r.updated_at end`) + refunds.Stamp
	insertAllocation = allocations.Insert("refund_id", "@refund", "position", "@position", "held_version", `(`+moneyVersion+`)`)
)

// InsertRefund writes a new refund with its allocations before the gateway is called. The transaction has locked their intents,
// whose money the refund reserves.
func InsertRefund(ctx context.Context, tx pg.Tx, r domain.Refund) (domain.Refund, error) {
	b := &pgx.Batch{}
	b.Queue(insertRefund, refunds.Args(r)).QueryRow(pg.Into(&r.Version, &r.CreatedAt, &r.UpdatedAt))
	refundMetadata.QueueInsert(b, r.ID, r.Metadata)
	for i, a := range r.Allocations {
		queueReserve(b, a.IntentID, a.Minor)
		args := allocations.Args(a)
		args["refund"], args["position"], args["booking"], args["currency"] = r.ID, i, r.BookingID, r.Amount.Currency
		b.Queue(insertAllocation, args)
	}
	r, err := pg.SendFor(ctx, tx, b, "insert refund", &r)
	return r, backed(err)
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
	return pg.Send(ctx, tx, b, "reserve")
}

func queueReserve(b *pgx.Batch, id domain.IntentID, minor int64) {
	b.Queue(`update payment_intents p set refund_reserved = p.refund_reserved + @minor
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": id, "minor": minor})
}

// LeaseRefund writes the lease of the calls of a refund.
func LeaseRefund(ctx context.Context, tx pg.Tx, r domain.Refund) error {
	return pg.Exec(ctx, tx, "lease refund", `update refunds r set leased_until = @leased_until
		where r.tenant_id = @tenant and r.livemode = @live and r.id = @id`, refunds.Args(r))
}

// UpdateRefund writes the state of a refund that the transaction has locked, and the state of one of its allocations. It increments
// the version after a visible change of a refund that was already shown.
func UpdateRefund(ctx context.Context, tx pg.Tx, r domain.Refund, a domain.Allocation, raise, visible bool) (domain.Refund, error) {
	args := refunds.Args(r)
	args["raise"], args["visible"] = raise, visible
	b := &pgx.Batch{}
	b.Queue(allocations.UpdateWith(""), allocations.Args(a))
	b.Queue(updateRefund, args).QueryRow(pg.Into(&r.Version, &r.CreatedAt, &r.UpdatedAt))
	return pg.SendFor(ctx, tx, b, "update refund", &r)
}

// BeginAttempt writes a new attempt of an allocation.
func BeginAttempt(ctx context.Context, tx pg.Tx, a domain.Allocation) error {
	return pg.Exec(ctx, tx, "begin attempt", `update refund_allocations a set attempt = @attempt, attempted_at = @attempted_at
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id`,
		pg.Args{"id": a.ID, "attempt": a.Attempt, "attempted_at": a.AttemptedAt})
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
	args := refunds.Args(r)
	args["until"] = until
	return pg.Exec(ctx, tx, "leave refund", `update refunds r set leased_until = @until
		where r.tenant_id = @tenant and r.livemode = @live and r.id = @id and r.leased_until = @leased_until`, args)
}

// RefundDue is a refund whose calls must be resumed.
type RefundDue struct {
	operation.Owner

	ID domain.RefundID
}

// RefundsLeft finds refunds whose calls a process has abandoned.
var RefundsLeft = operation.FindDue[RefundDue](
	`select r.tenant_id, r.livemode, r.id from refunds r where r.leased_until is not null and r.leased_until <= $3`, "r", "r.leased_until, r.id")
