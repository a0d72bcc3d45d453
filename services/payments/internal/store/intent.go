package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// intents also reads the state of the booking, so that one statement reads both as of the same instant.
var intents = pg.NewTable("payment_intents", "p", domain.ErrIntentNotFound, func(p *domain.Intent) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{
			"id", &p.ID, "account_id", &p.AccountID, "currency", &p.Amount.Currency, "booking_id", &p.BookingID, "invoice_id", &p.InvoiceID,
			"customer_id", &p.CustomerID, "capture_method", &p.CaptureMethod, "description", &p.Description, "receipt_email", &p.ReceiptEmail,
			"metadata", pg.Raw(&p.Metadata), "attempt", &p.Call.Attempt, "attempted_at", &p.Call.AttemptedAt, "begun_at", &p.Call.Since,
			"leased_until", &p.Call.Until,
		},
		Values: pg.F{
			"gateway_id", pg.Null(&p.GatewayID), "status", &p.Status, "amount", &p.Amount.Minor, "received", &p.Received, "capturable", &p.Capturable,
			"refunded", &p.Refunded, "refunded_elsewhere", &p.RefundedElsewhere, "lost", &p.Lost, "failure", &p.Failure,
			"failed_charge", pg.Null(&p.FailedCharge), "disputed", &p.Disputed, "ever_disputed", &p.EverDisputed, "charge", pg.Null(&p.Charges.To),
			"charge_back", pg.Null(&p.Charges.Back), "refund", pg.Null(&p.Refunds.To), "refund_back", pg.Null(&p.Refunds.Back),
			"succeeded_at", &p.SucceededAt, "canceled_at", &p.CanceledAt, "applied", &p.Applied,
		},
		Read: pg.F{
			"refund_reserved", &p.RefundReserved, "version", &p.Version, "created_at", &p.CreatedAt, "updated_at", &p.UpdatedAt, "reads", &p.Reads,
			`coalesce((select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = p.booking_id), '') as booking_status`,
			&p.BookingStatus,
		},
	}
})

// Intent reads an intent by the gateway's id, or returns domain.ErrIntentNotFound.
func Intent(ctx context.Context, q pg.Q, id domain.GatewayID) (domain.Intent, error) {
	return intents.One(ctx, q, `p.gateway_id = @id`, pg.Args{"id": id})
}

// IntentRow reads an intent by the id of its row, whether or not the gateway knows it.
func IntentRow(ctx context.Context, q pg.Q, id domain.IntentID) (domain.Intent, error) {
	return intents.Get(ctx, q, id, "")
}

// IntentForUpdate locks the row until the transaction ends.
func IntentForUpdate(ctx context.Context, tx pg.Tx, id domain.IntentID) (domain.Intent, error) {
	return intents.Get(ctx, tx, id, "for update")
}

// intentMetadata is the table of the metadata pairs by which lists are filtered.
var intentMetadata = pg.MetadataTable{Name: "payment_intent_metadata", Owner: "intent_id"}

var (
	insertIntent = intents.InsertNow("") + intents.Stamp
	updateIntent = intents.UpdateWith(`leased_until = null, version = p.version + @visible::boolean::int,
		updated_at = case when @visible::boolean or p.gateway_id is null then clock_timestamp() else p.updated_at end`) + intents.Stamp
)

// InsertIntent writes a new intent before the gateway is called.
func InsertIntent(ctx context.Context, tx pg.Tx, p domain.Intent) (domain.Intent, error) {
	b := &pgx.Batch{}
	b.Queue(insertIntent, intents.Args(p)).QueryRow(pg.Into(&p.Version, &p.CreatedAt, &p.UpdatedAt))
	intentMetadata.QueueInsert(b, p.ID, p.Metadata)
	return pg.SendFor(ctx, tx, b, "insert payment intent", &p)
}

// SaveCall writes the call in progress, and whether the gateway refused to create the intent.
func SaveCall(ctx context.Context, tx pg.Tx, p domain.Intent) error {
	return pg.Exec(ctx, tx, "save call", `
		update payment_intents p set status = @status, attempt = @attempt, attempted_at = @attempted_at, leased_until = @leased_until
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, intents.Args(p))
}

// LeaveCall writes when to resume a call whose outcome is unknown, unless another process has taken it.
func LeaveCall(ctx context.Context, tx pg.Tx, p domain.Intent, until time.Time) error {
	args := intents.Args(p)
	args["until"] = until
	return pg.Exec(ctx, tx, "leave call", `
		update payment_intents p set leased_until = @until
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id and p.status = 'creating' and p.attempt = @attempt
			and p.leased_until = @leased_until`, args)
}

// UpdateIntent writes the gateway's state of an intent that the transaction has locked, and ends the call in progress. It
// increments the version if visible is true. An intent that was not listed before counts as updated now.
func UpdateIntent(ctx context.Context, tx pg.Tx, p domain.Intent, visible bool) (domain.Intent, error) {
	args := intents.Args(p)
	args["visible"] = visible
	b := &pgx.Batch{}
	b.Queue(updateIntent, args).QueryRow(pg.Into(&p.Version, &p.CreatedAt, &p.UpdatedAt))
	return pg.SendFor(ctx, tx, b, "update payment intent", &p)
}

// beginRead assigns a number to a read of the gateway's state of an intent before the read begins.
const beginRead = `update payment_intents p set reads = p.reads + 1 where p.tenant_id = @tenant and p.livemode = @live and `

// BeginRead assigns a number to a read of the gateway's state before it begins, and returns the intent with the number.
func BeginRead(ctx context.Context, tx pg.Tx, id domain.IntentID) (domain.Intent, error) {
	return pg.One(ctx, tx, intents.Scan, domain.ErrIntentNotFound, beginRead+`p.id = @id returning `+intents.Columns, pg.Args{"id": id})
}

// SaveRead writes the number of the last applied read of the gateway's state.
func SaveRead(ctx context.Context, tx pg.Tx, p domain.Intent) error {
	return pg.Exec(ctx, tx, "save read", `update payment_intents p set applied = @applied
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": p.ID, "applied": p.Applied})
}

// IntentDue is an intent whose call must be resumed.
type IntentDue struct {
	operation.Owner

	ID domain.IntentID
}

// IntentsLeft finds intents whose call a process has abandoned.
var IntentsLeft = operation.FindDue[IntentDue](
	`select p.tenant_id, p.livemode, p.id from payment_intents p where p.leased_until is not null and p.leased_until <= $3`, "p", "p.leased_until, p.id")
