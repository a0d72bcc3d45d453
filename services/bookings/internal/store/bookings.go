package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// BookingFilter narrows a list; nil and empty fields do not. Now decides which holds have run out.
type BookingFilter struct {
	Now           time.Time
	Status        []domain.Status
	PaymentStatus []domain.PaymentStatus
	Customer      *domain.CustomerID
	Service       *domain.ServiceID
	Unit          *domain.UnitID
	Package       *domain.PackageID
	EventType     *string
	From, To      *civil.Date // the event's day, inclusive
	Metadata      map[string]string
}

// Bookings reads one page.
func Bookings(ctx context.Context, q pg.Q, f BookingFilter, r page.Request) (page.Rows[domain.Booking], error) {
	return page.Search(ctx, q, r, page.List[domain.Booking]{
		Alias:      "b",
		Scan:       scanBooking,
		Statement:  func(r page.Request, narrow func(*page.Where)) (string, []any) { return bookingsSQL(f, r, narrow) },
		Conditions: page.MetadataConditions(bookingMetadata, "b", f.Metadata),
	})
}

// BookingPlace is the place of a booking in a list.
type BookingPlace struct {
	ID        domain.BookingID
	CreatedAt time.Time
}

// BookingIDs reads one page of the bookings that name a customer, without their content.
func BookingIDs(ctx context.Context, q pg.Q, customer domain.CustomerID, r page.Request) (page.Rows[BookingPlace], error) {
	w := &page.Where{}
	w.Add(`b.tenant_id = @tenant and b.livemode = @live and b.customer_id = ?`, customer)
	tail, args := w.Page(r, "b")
	return page.Read(ctx, q, r, pgx.RowToStructByName[BookingPlace], `select b.id, b.created_at from bookings b `+tail, args...)
}

// bookingStates are the conditions by state. A pending booking whose hold has run out counts as expired.
func bookingStates(f BookingFilter) (list []page.Alternative) {
	for _, s := range slices.Compact(slices.Sorted(slices.Values(f.Status))) {
		switch s {
		case domain.Pending:
			list = append(list, page.When(`b.status = 'pending' and (b.hold_expires_at is null or b.hold_expires_at > ?)`, f.Now))
		case domain.Expired:
			list = append(list, page.When(`b.status = 'expired'`),
				page.When(`b.status = 'pending' and b.hold_expires_at is not null and b.hold_expires_at <= ?`, f.Now))
		case domain.Confirmed, domain.Cancelled, domain.Completed, domain.NoShow:
			list = append(list, page.When(`b.status = ?`, string(s)))
		}
	}
	return list
}

// bookingsSQL is the list of a filter. narrow adds conditions to each of its parts.
func bookingsSQL(f BookingFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	return page.Union(r, bookingStates(f), func(w *page.Where) (string, []any) { return bookingsOf(w, f, r, narrow) })
}

func bookingsOf(w *page.Where, f BookingFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`b.tenant_id = @tenant and b.livemode = @live`)
	equal(w, `b.customer_id = ?`, f.Customer)
	equal(w, `b.service_id = ?`, f.Service)
	equal(w, `b.unit_id = ?`, f.Unit)
	equal(w, `b.package_id = ?`, f.Package)
	equal(w, `b.event_type = ?`, f.EventType)
	if len(f.PaymentStatus) > 0 {
		w.Add(`b.payment_status = any(?)`, f.PaymentStatus)
	}
	if f.From != nil {
		w.Add(`b.event_day >= ?`, f.From.UTC())
	}
	if f.To != nil {
		w.Add(`b.event_day <= ?`, f.To.UTC())
	}
	narrow(w)
	tail, args := w.Page(r, "b")
	return `select ` + bookingColumns + ` from bookings b ` + tail, args
}

func equal[T any](w *page.Where, cond string, v *T) {
	if v != nil {
		w.Add(cond, *v)
	}
}
