package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var bookings = pg.NewTable("bookings", "b", domain.ErrBookingNotFound, func(b *domain.Booking) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{
			"id", &b.ID, "number", &b.Number, "lead_id", &b.LeadID, "quote_id", &b.QuoteID, "timezone", civil.ZoneOf(&b.Loc), "exclusive", &b.Exclusive,
		},
		Values: pg.F{
			"status", &b.Status, "customer_id", &b.CustomerID, "service_id", &b.ServiceID, "unit_id", &b.UnitID, "package_id", &b.PackageID,
			"package_snapshot", &b.Snapshot, "event_type", &b.EventType, "event_day", &b.Day, "event_at", &b.EventAt, "event_start", &b.Start,
			"event_end", &b.End, "starts_at", &b.StartsAt, "ends_at", &b.EndsAt, "guest_count", &b.GuestCount, "session_id", &b.Session,
			"seats", pg.Null(&b.Seats), "notes", &b.Notes,
			"currency", money.CurrencyOf(&b.Total, &b.Gross, &b.Deposit, &b.Paid, &b.Refunded), "total", &b.Total.Minor, "gross", &b.Gross.Minor,
			"taxes", &b.Taxes, "deposit", &b.Deposit.Minor, "paid", &b.Paid.Minor, "refunded", &b.Refunded.Minor, "disputed", &b.Disputed,
			"account_version", &b.Account, "invoiced", &b.Invoices.Invoiced, "dues", &b.Invoices.Dues, "placed", &b.Invoices.Placed,
			"credited", &b.Invoices.Credited, "deposit_paid", &b.Invoices.DepositPaid, "hold_expires_at", &b.HoldExpiresAt,
			"cancel_reason", &b.CancelReason, "cancel_policy", &b.Policy, "refund_due", &b.RefundDue, "ended_account", &b.Ended,
			"metadata", pg.Raw(&b.Metadata), "confirmed_at", &b.ConfirmedAt, "cancelled_at", &b.CancelledAt, "expired_at", &b.ExpiredAt,
			"completed_at", &b.CompletedAt,
		},
		Written: pg.F{"payment_status", b.Amounts.Status()},
		Read: pg.F{
			"version", &b.Version, "created_at", &b.CreatedAt, "updated_at", &b.UpdatedAt, "sort_starts_at", &b.Begins,
			`array(select i.invoice_id from booking_invoices i where i.tenant_id = b.tenant_id and i.livemode = b.livemode and i.booking_id = b.id
				order by i.invoice_id limit 100) as invoice_ids`, &b.InvoiceIDs,
		},
	}
})

// bookingMetadata is the table of the metadata pairs by which lists are filtered.
var bookingMetadata = pg.MetadataTable{Name: "booking_metadata", Owner: "booking_id"}

// Booking reads one booking as it is stored, or returns domain.ErrBookingNotFound. Its hold may have lapsed in the meantime, so
// apply domain.Booking.At before you show or validate it.
func Booking(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Booking, error) {
	return bookings.Get(ctx, q, id, "")
}

// BookingForUpdate locks the row until the transaction ends.
func BookingForUpdate(ctx context.Context, tx pg.Tx, id domain.BookingID) (domain.Booking, error) {
	return bookings.Get(ctx, tx, id, "for update")
}

// LinkedBooking reads the booking of a quote or a lead, or returns domain.ErrBookingNotFound.
func LinkedBooking(ctx context.Context, q pg.Q, o domain.Origin) (domain.Booking, error) {
	if !o.Quote.IsZero() {
		return bookings.One(ctx, q, ofQuote, pg.Args{"quote": o.Quote})
	}
	return bookings.One(ctx, q, ofLead, pg.Args{"lead": o.Lead})
}

const (
	ofQuote = `b.quote_id = @quote`
	ofLead  = `b.lead_id = @lead and b.quote_id is null`
)

// InsertBooking writes a new booking, its claim (nil: none), and its metadata in the round trip of the commit. at is the time of the
// booking, later than the start of the transaction. It returns the booking with its times. The transaction fails with
// domain.ErrSlotUnavailable if the slot is taken, with domain.ErrClosed if a closure overlaps it, and with domain.ErrLinked for a second
// booking of a quote or a lead.
func InsertBooking(tx pg.Tx, k domain.Booking, claim *Claim, at time.Time) (domain.Booking, error) {
	k.Version, k.CreatedAt, k.UpdatedAt = 1, at, at
	args := bookings.Args(k)
	args["at"] = at
	b := &pgx.Batch{}
	b.Queue(insertBooking, args)
	if claim != nil {
		b.Queue(insertClaim, claim.args())
	}
	bookingMetadata.QueueInsert(b, k.ID, k.Metadata)
	tx.QueueBatchAtCommit(b, bookingError)
	return k, nil
}

var insertBooking = bookings.Insert("created_at", "@at", "updated_at", "@at")

// UpdateBooking writes all mutable fields of a booking that the transaction has locked, and increments its version. It returns the
// booking with the new version and time. Its claim is written separately.
func UpdateBooking(ctx context.Context, tx pg.Tx, k domain.Booking) (domain.Booking, error) {
	b := &pgx.Batch{}
	b.Queue(bookings.Update, bookings.Args(k)).QueryRow(pg.Into(&k.Version, &k.CreatedAt, &k.UpdatedAt))
	bookingMetadata.QueueDelete(b, k.ID)
	bookingMetadata.QueueInsert(b, k.ID, k.Metadata)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return domain.Booking{}, bookingError(err)
	}
	return k, nil
}

// UpdateBalance writes what payments and customers have reported about the money of a booking that the transaction has locked, if no
// client can see a difference. The version stays.
func UpdateBalance(ctx context.Context, tx pg.Tx, id domain.BookingID, r domain.Balance) error {
	return pg.Exec(ctx, tx, "update balance", `
		update bookings b set account_version = @account, invoiced = @invoiced, dues = @dues, placed = @placed, deposit_paid = @deposit_paid
		where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`, pg.Args{
		"id": id, "account": r.Account, "invoiced": r.Invoices.Invoiced, "dues": r.Invoices.Dues, "placed": r.Invoices.Placed,
		"deposit_paid": r.Invoices.DepositPaid,
	})
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
