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

// intentColumns also contains the state of the booking, so that one statement reads both as of the same instant.
const intentColumns = `p.id, coalesce(p.gateway_id, ''), p.account_id, p.status, p.amount, p.currency, p.received, p.capturable, p.refunded, p.refund_reserved, p.refunded_elsewhere, p.lost,
	p.booking_id, p.invoice_id, p.customer_id, p.capture_method, p.description, p.receipt_email, p.metadata, p.failure, coalesce(p.failed_charge, ''), p.disputed, p.ever_disputed, coalesce(p.charge, ''), coalesce(p.charge_back, ''),
	coalesce(p.refund, ''), coalesce(p.refund_back, ''),
	p.version, p.created_at, p.updated_at, p.succeeded_at, p.canceled_at, p.attempt, p.attempted_at, p.begun_at, p.leased_until,
	p.reads, p.applied,
	coalesce((select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = p.booking_id), '')`

const oneIntent = `select ` + intentColumns + ` from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and `

func scanIntent(row pgx.CollectableRow) (domain.Intent, error) {
	var p domain.Intent
	var failure []byte
	err := row.Scan(&p.ID, &p.GatewayID, &p.AccountID, &p.Status, &p.Amount.Minor, &p.Amount.Currency, &p.Received, &p.Capturable, &p.Refunded, &p.RefundReserved, &p.RefundedElsewhere, &p.Lost,
		&p.BookingID, &p.InvoiceID, &p.CustomerID, &p.CaptureMethod, &p.Description, &p.ReceiptEmail, &p.Metadata, &failure, &p.FailedCharge, &p.Disputed, &p.EverDisputed, &p.Charges.To, &p.Charges.Back, &p.Refunds.To, &p.Refunds.Back,
		&p.Version, &p.CreatedAt, &p.UpdatedAt, &p.SucceededAt, &p.CanceledAt, &p.Call.Attempt, &p.Call.AttemptedAt, &p.Call.Since, &p.Call.Until,
		&p.Reads, &p.Applied, &p.BookingStatus)
	if err == nil && len(failure) > 0 {
		err = json.Unmarshal(failure, &p.Failure)
	}
	if err != nil {
		return domain.Intent{}, fmt.Errorf("scan payment intent: %w", err)
	}
	return p, nil
}

// Intent reads an intent by the gateway's id, or returns domain.ErrIntentNotFound.
func Intent(ctx context.Context, q pg.Q, id domain.GatewayID) (domain.Intent, error) {
	return pg.One(ctx, q, scanIntent, domain.ErrIntentNotFound, oneIntent+`p.gateway_id = @id`, pg.Args{"id": id})
}

// IntentRow reads an intent by the id of its row, whether or not the gateway knows it.
func IntentRow(ctx context.Context, q pg.Q, id domain.IntentID) (domain.Intent, error) {
	return pg.One(ctx, q, scanIntent, domain.ErrIntentNotFound, oneIntent+`p.id = @id`, pg.Args{"id": id})
}

// IntentForUpdate locks the row until the transaction ends.
func IntentForUpdate(ctx context.Context, tx pg.Tx, id domain.IntentID) (domain.Intent, error) {
	return pg.One(ctx, tx, scanIntent, domain.ErrIntentNotFound, oneIntent+`p.id = @id for update`, pg.Args{"id": id})
}

// intentMetadata is the table of the metadata pairs by which lists are filtered.
var intentMetadata = pg.MetadataTable{Name: "payment_intent_metadata", Owner: "intent_id"}

// InsertIntent writes a new intent before the gateway is called.
func InsertIntent(ctx context.Context, tx pg.Tx, p domain.Intent) (domain.Intent, error) {
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], pgx.ErrNoRows, `
		insert into payment_intents as p (tenant_id, livemode, id, account_id, status, amount, currency, booking_id, invoice_id, customer_id,
			capture_method, description, receipt_email, metadata, attempt, attempted_at, begun_at, leased_until,
			created_at, updated_at)
		values (@tenant, @live, @id, @account, @status, @amount, @currency, @booking, @invoice, @customer, @capture, @description, @email,
			@metadata, @attempt, @attempted_at, @begun_at, @leased_until,
			clock_timestamp(), clock_timestamp())
		returning p.version, p.created_at, p.updated_at`, intentArgs(p))
	if err != nil {
		return domain.Intent{}, fmt.Errorf("insert payment intent: %w", err)
	}
	p.Version, p.CreatedAt, p.UpdatedAt = at.Version, at.CreatedAt, at.UpdatedAt
	b := &pgx.Batch{}
	intentMetadata.QueueInsert(b, p.ID, p.Metadata)
	return p, sendSome(ctx, tx, b)
}

// sendSome sends a batch that may be empty.
func sendSome(ctx context.Context, tx pg.Tx, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}

func intentArgs(p domain.Intent) pg.Args {
	return pg.Args{
		"id": p.ID, "account": p.AccountID, "status": p.Status, "amount": p.Amount.Minor, "currency": p.Amount.Currency,
		"booking": p.BookingID, "invoice": p.InvoiceID, "customer": p.CustomerID, "capture": p.CaptureMethod, "description": p.Description,
		"email": p.ReceiptEmail, "metadata": pg.JSONText(p.Metadata), "attempt": p.Call.Attempt, "attempted_at": p.Call.AttemptedAt, "begun_at": p.Call.Since,
		"leased_until": p.Call.Until,
	}
}

// SaveCall writes the call in progress, and whether the gateway refused to create the intent.
func SaveCall(ctx context.Context, tx pg.Tx, p domain.Intent) error {
	_, err := tx.Exec(ctx, `
		update payment_intents p set status = @status, attempt = @attempt, attempted_at = @attempted_at, leased_until = @leased_until
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, intentArgs(p))
	if err != nil {
		return fmt.Errorf("save call: %w", err)
	}
	return nil
}

// LeaveCall writes when to resume a call whose outcome is unknown, unless another process has taken it.
func LeaveCall(ctx context.Context, tx pg.Tx, p domain.Intent, until time.Time) error {
	args := intentArgs(p)
	args["until"] = until
	_, err := tx.Exec(ctx, `
		update payment_intents p set leased_until = @until
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id and p.status = 'creating' and p.attempt = @attempt
			and p.leased_until = @leased_until`, args)
	if err != nil {
		return fmt.Errorf("leave call: %w", err)
	}
	return nil
}

// UpdateIntent writes the gateway's state of an intent that the transaction has locked, and ends the call in progress. It
// increments the version if visible is true. An intent that was not listed before counts as updated now.
func UpdateIntent(ctx context.Context, tx pg.Tx, p domain.Intent, visible bool) (domain.Intent, error) {
	failure, err := failureText(p.Failure)
	if err != nil {
		return domain.Intent{}, err
	}
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], domain.ErrIntentNotFound, `
		update payment_intents p set gateway_id = @gateway, status = @status, amount = @amount, received = @received, capturable = @capturable,
			refunded = @refunded, refunded_elsewhere = @elsewhere, lost = @lost, failure = @failure, failed_charge = nullif(@failed_charge::text, ''), disputed = @disputed, ever_disputed = @ever_disputed, charge = nullif(@charge::text, ''),
			charge_back = nullif(@charge_back::text, ''), refund = nullif(@refund::text, ''), refund_back = nullif(@refund_back::text, ''), succeeded_at = @succeeded_at, canceled_at = @canceled_at,
			leased_until = null, applied = @applied,
			version = p.version + @visible::boolean::int,
			updated_at = case when @visible::boolean or p.gateway_id is null then clock_timestamp() else p.updated_at end
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id
		returning p.version, p.created_at, p.updated_at`, pg.Args{
		"id": p.ID, "gateway": p.GatewayID, "status": p.Status, "amount": p.Amount.Minor, "received": p.Received, "capturable": p.Capturable,
		"refunded": p.Refunded, "elsewhere": p.RefundedElsewhere, "lost": p.Lost, "failure": failure, "failed_charge": p.FailedCharge, "disputed": p.Disputed, "ever_disputed": p.EverDisputed, "charge": p.Charges.To, "charge_back": p.Charges.Back, "refund": p.Refunds.To,
		"refund_back": p.Refunds.Back, "succeeded_at": p.SucceededAt,
		"canceled_at": p.CanceledAt, "applied": p.Applied, "visible": visible,
	})
	if err != nil {
		return domain.Intent{}, fmt.Errorf("update payment intent: %w", err)
	}
	p.Version, p.UpdatedAt = at.Version, at.UpdatedAt
	return p, nil
}

// beginRead assigns a number to a read of the gateway's state of an intent before the read begins.
const beginRead = `update payment_intents p set reads = p.reads + 1 where p.tenant_id = @tenant and p.livemode = @live and `

// BeginRead assigns a number to a read of the gateway's state before it begins, and returns the intent with the number.
func BeginRead(ctx context.Context, tx pg.Tx, id domain.IntentID) (domain.Intent, error) {
	return pg.One(ctx, tx, scanIntent, domain.ErrIntentNotFound, beginRead+`p.id = @id returning `+intentColumns, pg.Args{"id": id})
}

// SaveRead writes the number of the last applied read of the gateway's state.
func SaveRead(ctx context.Context, tx pg.Tx, p domain.Intent) error {
	_, err := tx.Exec(ctx, `update payment_intents p set applied = @applied
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": p.ID, "applied": p.Applied})
	if err != nil {
		return fmt.Errorf("save read: %w", err)
	}
	return nil
}

// IntentDue is an intent whose call must be resumed.
type IntentDue struct {
	operation.Owner

	ID domain.IntentID
}

// IntentsLeft returns up to limit intents of all tenants and modes whose call a process has abandoned, oldest first. It skips the
// owners in except. tx has the worker role.
func IntentsLeft(ctx context.Context, tx pg.Tx, real time.Time, except []operation.Owner, limit int) ([]IntentDue, error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[IntentDue], `
		select p.tenant_id, p.livemode, p.id from payment_intents p
		where p.leased_until is not null and p.leased_until <= $3`+operation.Outside("p")+`
		order by p.leased_until, p.id limit $4`, tenants, modes, real, limit)
}
