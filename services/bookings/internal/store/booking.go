package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const bookingColumns = `b.id, b.number, b.status, b.customer_id, b.lead_id, b.quote_id, b.service_id, b.unit_id, b.package_id,
	b.package_snapshot, b.event_type, b.event_day, b.event_at, b.event_start, b.event_end, b.starts_at, b.ends_at, b.timezone,
	b.guest_count, b.exclusive, b.session_id, coalesce(b.seats, 0), b.notes, b.currency, b.total, coalesce(b.gross, b.total), b.taxes, b.deposit, b.paid, b.refunded, b.disputed,
	b.account_version, b.invoiced, b.dues, b.placed, b.credited, b.deposit_paid, b.hold_expires_at, b.cancel_reason,
	b.cancel_policy, b.refund_due, b.ended_account, b.metadata, b.version, b.created_at, b.updated_at, b.confirmed_at, b.cancelled_at, b.expired_at, b.completed_at,
	b.sort_starts_at, array(select i.invoice_id from booking_invoices i where i.tenant_id = b.tenant_id and i.livemode = b.livemode and i.booking_id = b.id
		order by i.invoice_id limit 100) as invoice_ids`

func scanBooking(row pgx.CollectableRow) (domain.Booking, error) {
	var b domain.Booking
	var zone, currency string
	var snapshot, taxes, policy, ended []byte
	err := row.Scan(&b.ID, &b.Number, &b.Status, &b.CustomerID, &b.LeadID, &b.QuoteID, &b.ServiceID, &b.UnitID, &b.PackageID,
		&snapshot, &b.EventType, &b.Day, &b.EventAt, &b.Start, &b.End, &b.StartsAt, &b.EndsAt, &zone,
		&b.GuestCount, &b.Exclusive, &b.Session, &b.Seats, &b.Notes, &currency, &b.Total.Minor, &b.Gross.Minor, &taxes, &b.Deposit.Minor, &b.Paid.Minor, &b.Refunded.Minor, &b.Disputed,
		&b.Account, &b.Invoices.Invoiced, &b.Invoices.Dues, &b.Invoices.Placed, &b.Invoices.Credited, &b.Invoices.DepositPaid, &b.HoldExpiresAt,
		&b.CancelReason, &policy, &b.RefundDue, &ended, &b.Metadata, &b.Version, &b.CreatedAt, &b.UpdatedAt, &b.ConfirmedAt, &b.CancelledAt, &b.ExpiredAt, &b.CompletedAt, &b.Begins, &b.InvoiceIDs)
	if err != nil {
		return domain.Booking{}, fmt.Errorf("scan booking: %w", err)
	}
	b.Total.Currency, b.Gross.Currency, b.Deposit.Currency, b.Paid.Currency, b.Refunded.Currency = currency, currency, currency, currency, currency
	if b.Loc, err = civil.Location(zone); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: %w", b.ID, err)
	}
	if b.Snapshot, err = fromJSON[domain.Snapshot](snapshot); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: snapshot: %w", b.ID, err)
	}
	if b.Taxes, err = fromJSON[domain.Taxes](taxes); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: taxes: %w", b.ID, err)
	}
	if b.Policy, err = fromJSON[domain.Policy](policy); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: policy: %w", b.ID, err)
	}
	if b.Ended, err = fromJSON[domain.AccountState](ended); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: account: %w", b.ID, err)
	}
	return b, nil
}

const oneBooking = `select ` + bookingColumns + ` from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`

// bookingMetadata is the table of the metadata pairs by which lists are filtered.
var bookingMetadata = pg.MetadataTable{Name: "booking_metadata", Owner: "booking_id"}

// Booking reads one booking as it is stored, or returns domain.ErrBookingNotFound. Its hold may have lapsed in the meantime, so
// apply domain.Booking.At before you show or validate it.
func Booking(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Booking, error) {
	return pg.One(ctx, q, scanBooking, domain.ErrBookingNotFound, oneBooking, pg.Args{"id": id})
}

// BookingForUpdate locks the row until the transaction ends.
func BookingForUpdate(ctx context.Context, tx pg.Tx, id domain.BookingID) (domain.Booking, error) {
	return pg.One(ctx, tx, scanBooking, domain.ErrBookingNotFound,
		oneBooking+` for update`, pg.Args{"id": id})
}

// LinkedBooking reads the booking of a quote or a lead, or returns domain.ErrBookingNotFound.
func LinkedBooking(ctx context.Context, q pg.Q, o domain.Origin) (domain.Booking, error) {
	if !o.Quote.IsZero() {
		return pg.One(ctx, q, scanBooking, domain.ErrBookingNotFound, bookingOfQuote, pg.Args{"quote": o.Quote})
	}
	return pg.One(ctx, q, scanBooking, domain.ErrBookingNotFound, bookingOfLead, pg.Args{"lead": o.Lead})
}

const (
	bookingOfQuote = `select ` + bookingColumns + ` from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.quote_id = @quote`
	bookingOfLead  = `select ` + bookingColumns + ` from bookings b
		where b.tenant_id = @tenant and b.livemode = @live and b.lead_id = @lead and b.quote_id is null`
)

// bookingArgs returns the columns that are written, by name.
func bookingArgs(k domain.Booking) (pg.Args, error) {
	snapshot, err := toJSON(k.Snapshot)
	if err != nil {
		return nil, err
	}
	taxes, err := toJSON(k.Taxes)
	if err != nil {
		return nil, err
	}
	policy, err := toJSON(k.Policy)
	if err != nil {
		return nil, err
	}
	ended, err := toJSON(k.Ended)
	if err != nil {
		return nil, err
	}
	return pg.Args{
		"id": k.ID, "number": k.Number, "status": k.Status, "customer_id": k.CustomerID, "lead_id": k.LeadID, "quote_id": k.QuoteID,
		"service_id": k.ServiceID, "unit_id": k.UnitID, "package_id": k.PackageID, "package_snapshot": snapshot,
		"event_type": k.EventType, "event_day": k.Day.UTC(), "event_at": k.EventAt, "event_start": k.Start, "event_end": k.End,
		"starts_at": k.StartsAt, "ends_at": k.EndsAt, "timezone": k.Loc.String(), "guest_count": k.GuestCount, "exclusive": k.Exclusive,
		"session_id": k.Session, "seats": seatsOrNull(k), "notes": k.Notes,
		"currency": k.Total.Currency, "total": k.Total.Minor, "gross": k.Gross.Minor, "taxes": taxes, "deposit": k.Deposit.Minor, "paid": k.Paid.Minor,
		"refunded": k.Refunded.Minor, "disputed": k.Disputed, "account_version": k.Account, "invoiced": k.Invoices.Invoiced, "dues": k.Invoices.Dues,
		"placed": k.Invoices.Placed, "credited": k.Invoices.Credited, "deposit_paid": k.Invoices.DepositPaid, "payment_status": k.Amounts.Status(), "hold_expires_at": k.HoldExpiresAt,
		"cancel_reason": k.CancelReason, "cancel_policy": policy, "refund_due": k.RefundDue, "ended_account": ended, "metadata": pg.JSONText(k.Metadata),
		"confirmed_at": k.ConfirmedAt, "cancelled_at": k.CancelledAt, "expired_at": k.ExpiredAt, "completed_at": k.CompletedAt,
	}, nil
}

// seatsOrNull returns null for a booking that is in no session.
func seatsOrNull(k domain.Booking) *int {
	if k.Session.IsZero() {
		return nil
	}
	return &k.Seats
}

// InsertBooking writes a new booking, its claim (nil: none), and its metadata in the round trip of the commit. at is the time of the
// booking, later than the start of the transaction. It returns the booking with its times. The transaction fails with
// domain.ErrSlotUnavailable if the slot is taken, with domain.ErrClosed if a closure overlaps it, and with domain.ErrLinked for a second
// booking of a quote or a lead.
func InsertBooking(tx pg.Tx, k domain.Booking, claim *Claim, at time.Time) (domain.Booking, error) {
	args, err := bookingArgs(k)
	if err != nil {
		return domain.Booking{}, err
	}
	args["at"] = at
	b := &pgx.Batch{}
	b.Queue(`
		insert into bookings as b (tenant_id, livemode, id, number, status, customer_id, lead_id, quote_id, service_id, unit_id, package_id,
			package_snapshot, event_type, event_day, event_start, event_end, starts_at, ends_at, timezone, guest_count, exclusive, session_id, seats, notes,
			currency, total, gross, taxes, deposit, paid, refunded, payment_status, hold_expires_at, metadata, confirmed_at,
			cancel_policy, event_at, created_at, updated_at, version)
		values (@tenant, @live, @id, @number, @status, @customer_id, @lead_id, @quote_id, @service_id,
			@unit_id, @package_id, @package_snapshot, @event_type, @event_day, @event_start, @event_end,
			@starts_at, @ends_at, @timezone, @guest_count, @exclusive, @session_id, @seats, @notes,
			@currency, @total, @gross, @taxes, @deposit, @paid, @refunded, @payment_status, @hold_expires_at, @metadata,
			@confirmed_at, @cancel_policy, @event_at, @at, @at, 1)`, args)
	if claim != nil {
		b.Queue(insertClaim, claim.args())
	}
	bookingMetadata.QueueInsert(b, k.ID, k.Metadata)
	tx.QueueBatchAtCommit(b, bookingError)
	k.Version, k.CreatedAt, k.UpdatedAt = 1, at, at
	return k, nil
}

// UpdateBooking writes all mutable fields of a booking that the transaction has locked, and increments its version. It returns the
// booking with the new version and time. Its claim is written separately.
func UpdateBooking(ctx context.Context, tx pg.Tx, k domain.Booking) (domain.Booking, error) {
	args, err := bookingArgs(k)
	if err != nil {
		return domain.Booking{}, err
	}
	b := &pgx.Batch{}
	b.Queue(`
		update bookings b set status = @status, customer_id = @customer_id, service_id = @service_id, unit_id = @unit_id,
			package_id = @package_id, package_snapshot = @package_snapshot, event_type = @event_type, event_day = @event_day,
			event_at = @event_at, event_start = @event_start, event_end = @event_end, starts_at = @starts_at, ends_at = @ends_at,
			guest_count = @guest_count, session_id = @session_id, seats = @seats, notes = @notes, currency = @currency, total = @total, gross = @gross, taxes = @taxes, deposit = @deposit,
			paid = @paid, refunded = @refunded, disputed = @disputed, account_version = @account_version, invoiced = @invoiced, dues = @dues, placed = @placed,
			credited = @credited, deposit_paid = @deposit_paid, payment_status = @payment_status, hold_expires_at = @hold_expires_at,
			cancel_reason = @cancel_reason, cancel_policy = @cancel_policy, refund_due = @refund_due, ended_account = @ended_account, metadata = @metadata,
			confirmed_at = @confirmed_at, cancelled_at = @cancelled_at, expired_at = @expired_at, completed_at = @completed_at, version = b.version + 1, updated_at = clock_timestamp()
		where b.tenant_id = @tenant and b.livemode = @live and b.id = @id
		returning b.version, b.created_at, b.updated_at`, args)
	bookingMetadata.QueueDelete(b, k.ID)
	bookingMetadata.QueueInsert(b, k.ID, k.Metadata)
	return stamped(ctx, tx, b, k)
}

// UpdateBalance writes what payments and customers have reported about the money of a booking that the transaction has locked, if no
// client can see a difference. The version stays.
func UpdateBalance(ctx context.Context, tx pg.Tx, id domain.BookingID, r domain.Balance) error {
	_, err := tx.Exec(ctx, `
		update bookings b set account_version = @account, invoiced = @invoiced, dues = @dues, placed = @placed, deposit_paid = @deposit_paid
		where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`, pg.Args{
		"id": id, "account": r.Account, "invoiced": r.Invoices.Invoiced, "dues": r.Invoices.Dues, "placed": r.Invoices.Placed,
		"deposit_paid": r.Invoices.DepositPaid,
	})
	if err != nil {
		return fmt.Errorf("update balance: %w", err)
	}
	return nil
}

// stamped sends a batch in one round trip. Its first statement returns version and times.
func stamped(ctx context.Context, tx pg.Tx, b *pgx.Batch, k domain.Booking) (domain.Booking, error) {
	res := tx.SendBatch(ctx, b)
	err := res.QueryRow().Scan(&k.Version, &k.CreatedAt, &k.UpdatedAt)
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Booking{}, bookingError(err)
	}
	return k, nil
}

// bookingError returns the error of a use case for the error of a write of a booking.
func bookingError(err error) error {
	switch pg.ConstraintName(err) {
	case "unit_claims_no_overlap":
		return slotError(err)
	case "unit_claims_seats":
		return domain.NoSeats(0).WithCause(err)
	case "bookings_quote", "bookings_lead":
		return fmt.Errorf("%w: %w", domain.ErrLinked, err)
	default:
		return fmt.Errorf("write booking: %w", err)
	}
}
