package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const bookingColumns = `b.id, b.number, b.status, b.customer_id, b.lead_id, b.quote_id, b.service_id, b.unit_id, b.package_id,
	b.package_snapshot, b.event_type, b.event_day, b.event_at, b.event_start, b.event_end, b.starts_at, b.ends_at, b.timezone,
	b.guest_count, b.notes, b.currency, b.total, b.deposit, b.paid, b.refunded, b.hold_expires_at, b.cancel_reason, b.cancel_policy,
	b.metadata, b.version, b.created_at, b.updated_at, b.confirmed_at, b.cancelled_at, b.completed_at`

func scanBooking(row pgx.CollectableRow) (domain.Booking, error) {
	var b domain.Booking
	var zone, currency string
	var snapshot, policy []byte
	err := row.Scan(&b.ID, &b.Number, &b.Status, &b.CustomerID, &b.LeadID, &b.QuoteID, &b.ServiceID, &b.UnitID, &b.PackageID,
		&snapshot, &b.EventType, &b.Day, &b.EventAt, &b.Start, &b.End, &b.StartsAt, &b.EndsAt, &zone,
		&b.GuestCount, &b.Notes, &currency, &b.Total.Minor, &b.Deposit.Minor, &b.Paid.Minor, &b.Refunded.Minor, &b.HoldExpiresAt, &b.CancelReason, &policy,
		&b.Metadata, &b.Version, &b.CreatedAt, &b.UpdatedAt, &b.ConfirmedAt, &b.CancelledAt, &b.CompletedAt)
	if err != nil {
		return domain.Booking{}, fmt.Errorf("scan booking: %w", err)
	}
	b.Total.Currency, b.Deposit.Currency, b.Paid.Currency, b.Refunded.Currency = currency, currency, currency, currency
	if b.Loc, err = domain.Location(zone); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: %w", b.ID, err)
	}
	if b.Snapshot, err = fromJSON[domain.Snapshot](snapshot); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: snapshot: %w", b.ID, err)
	}
	if b.Policy, err = fromJSON[domain.Policy](policy); err != nil {
		return domain.Booking{}, fmt.Errorf("booking %s: policy: %w", b.ID, err)
	}
	return b, nil
}

// Booking reads one booking as it is stored, or domain.ErrBookingNotFound. Whoever shows or judges it asks
// domain.Booking.At first: a hold may have run out since.
func Booking(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Booking, error) {
	return one(ctx, q, scanBooking, domain.ErrBookingNotFound, `select `+bookingColumns+` from bookings b where b.id = $1`, id)
}

// BookingForUpdate locks the row until the transaction ends.
func BookingForUpdate(ctx context.Context, tx pg.Tx, id domain.BookingID) (domain.Booking, error) {
	return one(ctx, tx, scanBooking, domain.ErrBookingNotFound,
		`select `+bookingColumns+` from bookings b where b.id = $1 for update`, id)
}

// InsertBooking writes a new booking, its claim (nil: none) and its metadata in one round trip, and returns
// it with its times. A taken slot is domain.ErrSlotUnavailable.
func InsertBooking(ctx context.Context, tx pg.Tx, k domain.Booking, claim *Claim) (domain.Booking, error) {
	snapshot, err := toJSON(k.Snapshot)
	if err != nil {
		return domain.Booking{}, err
	}
	policy, err := toJSON(k.Policy)
	if err != nil {
		return domain.Booking{}, err
	}
	b := &pgx.Batch{}
	b.Queue(`
		with stamp as materialized (select clock_timestamp() as at)
		insert into bookings as b (id, number, status, customer_id, lead_id, quote_id, service_id, unit_id, package_id,
			package_snapshot, event_type, event_day, event_start, event_end, starts_at, ends_at, timezone, guest_count, notes,
			currency, total, deposit, paid, refunded, payment_status, hold_expires_at, metadata, confirmed_at,
			cancel_policy, event_at, created_at, updated_at)
		select $1, $2, $3, $4::uuid, $5::uuid, $6::uuid, $7::uuid, $8::uuid, $9::uuid,
			$10, $11, $12, $13, $14, $15::timestamptz, $16::timestamptz, $17, $18::integer, $19,
			$20, $21, $22, $23, $24, $25, $26::timestamptz, $27, $28::timestamptz,
			$29, $30::timestamptz, at, at from stamp
		returning b.version, b.created_at, b.updated_at`,
		k.ID, k.Number, k.Status, k.CustomerID, k.LeadID, k.QuoteID, k.ServiceID, k.UnitID, k.PackageID,
		snapshot, k.EventType, k.Day.UTC(), k.Start, k.End, k.StartsAt, k.EndsAt, k.Loc.String(), k.GuestCount, k.Notes,
		k.Total.Currency, k.Total.Minor, k.Deposit.Minor, k.Paid.Minor, k.Refunded.Minor, k.Amounts.Status(), k.HoldExpiresAt,
		textOrNull(k.Metadata), k.ConfirmedAt, policy, k.EventAt)
	if claim != nil {
		b.Queue(putClaim, claim.Booking, claim.Unit, claim.From, claim.To)
	}
	queuePairs(b, k)
	return stamped(ctx, tx, b, k)
}

// UpdateBooking writes all that may change of a booking that the transaction has locked, raises its version
// and returns it with the new version and time. Its claim is written apart.
func UpdateBooking(ctx context.Context, tx pg.Tx, k domain.Booking) (domain.Booking, error) {
	snapshot, err := toJSON(k.Snapshot)
	if err != nil {
		return domain.Booking{}, err
	}
	policy, err := toJSON(k.Policy)
	if err != nil {
		return domain.Booking{}, err
	}
	b := &pgx.Batch{}
	b.Queue(`
		update bookings b set status = $2, customer_id = $3, service_id = $4, unit_id = $5, package_id = $6,
			package_snapshot = $7, event_type = $8, event_day = $9, event_start = $10, event_end = $11, starts_at = $12,
			ends_at = $13, guest_count = $14, notes = $15, currency = $16, total = $17, deposit = $18, payment_status = $19,
			hold_expires_at = $20, cancel_reason = $21, metadata = $22, confirmed_at = $23, cancelled_at = $24,
			completed_at = $25, cancel_policy = $26, event_at = $27, version = b.version + 1, updated_at = clock_timestamp()
		where b.id = $1
		returning b.version, b.created_at, b.updated_at`,
		k.ID, k.Status, k.CustomerID, k.ServiceID, k.UnitID, k.PackageID,
		snapshot, k.EventType, k.Day.UTC(), k.Start, k.End, k.StartsAt,
		k.EndsAt, k.GuestCount, k.Notes, k.Total.Currency, k.Total.Minor, k.Deposit.Minor, k.Amounts.Status(),
		k.HoldExpiresAt, k.CancelReason, textOrNull(k.Metadata), k.ConfirmedAt, k.CancelledAt, k.CompletedAt, policy, k.EventAt)
	b.Queue(`delete from booking_metadata where booking_id = $1`, k.ID)
	queuePairs(b, k)
	return stamped(ctx, tx, b, k)
}

func queuePairs(b *pgx.Batch, k domain.Booking) {
	pairs := k.MetadataPairs()
	if len(pairs) == 0 {
		return
	}
	keys, values := make([]string, 0, len(pairs)), make([]string, 0, len(pairs))
	for key, value := range pairs {
		keys, values = append(keys, key), append(values, value)
	}
	b.Queue(`insert into booking_metadata (key, value, booking_id)
		select k, v, $3 from unnest($1::text[], $2::text[]) as p(k, v)`, keys, values, k.ID)
}

// stamped sends a batch whose first statement returns version and times, in one round trip.
func stamped(ctx context.Context, tx pg.Tx, b *pgx.Batch, k domain.Booking) (domain.Booking, error) {
	res := tx.SendBatch(ctx, b)
	err := res.QueryRow().Scan(&k.Version, &k.CreatedAt, &k.UpdatedAt)
	err = errors.Join(err, res.Close())
	switch pg.ConstraintName(err) {
	case "":
	case "unit_claims_no_overlap":
		return domain.Booking{}, domain.ErrSlotUnavailable.With(err)
	}
	if err != nil {
		return domain.Booking{}, fmt.Errorf("write booking: %w", err)
	}
	return k, nil
}

// TakeNumbers reserves n booking numbers of the caller's tenant and mode and returns the first.
func TakeNumbers(ctx context.Context, tx pg.Tx, n int64) (int64, error) {
	rows, err := tx.Query(ctx, `
		insert into booking_counters as c (next) values (1 + $1)
		on conflict (tenant_id, livemode) do update set next = c.next + $1
		returning c.next - $1`, n)
	if err != nil {
		return 0, fmt.Errorf("take numbers: %w", err)
	}
	first, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("take numbers: %w", err)
	}
	return first, nil
}
