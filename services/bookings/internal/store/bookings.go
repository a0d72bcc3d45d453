package store

import (
	"context"
	"fmt"
	"strings"
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

// bookingsSQL joins one arm per state asked for, each with its own order and limit, so that each arm reads
// its index from where the page starts and no further. narrow adds conditions to each.
func bookingsSQL(f BookingFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w := &page.Where{}
	var all []string
	var args []any
	for _, state := range stateArms(f) {
		var sql string
		sql, args = arm(w.Fork(), f, r, state, narrow)
		all = append(all, sql)
	}
	if len(all) == 1 {
		return all[0], args
	}
	order := "created_at desc, id desc"
	if r.Updated {
		order = "updated_at, id"
	}
	return fmt.Sprintf(`select * from ((%s)) page order by %s limit %d`, strings.Join(all, ") union all ("), order, r.Limit+1), args
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

type condition struct {
	sql  string
	args []any
}

// stateArms are the conditions by state. A pending booking whose hold has run out counts as expired.
func stateArms(f BookingFilter) []*condition {
	if len(f.Status) == 0 {
		return []*condition{nil}
	}
	var arms []*condition
	seen := map[domain.Status]bool{}
	for _, s := range f.Status {
		if seen[s] {
			continue
		}
		seen[s] = true
		switch s {
		case domain.Pending:
			arms = append(arms, &condition{`b.status = 'pending' and (b.hold_expires_at is null or b.hold_expires_at > ?)`, []any{f.Now}})
		case domain.Expired:
			arms = append(arms, &condition{`b.status = 'expired'`, nil},
				&condition{`b.status = 'pending' and b.hold_expires_at is not null and b.hold_expires_at <= ?`, []any{f.Now}})
		case domain.Confirmed, domain.Cancelled, domain.Completed, domain.NoShow:
			arms = append(arms, &condition{`b.status = ?`, []any{string(s)}})
		}
	}
	return arms
}

// arm is the select of one state.
func arm(w *page.Where, f BookingFilter, r page.Request, state *condition, narrow func(*page.Where)) (string, []any) {
	w.Add(`b.tenant_id = @tenant and b.livemode = @live`)
	if state != nil {
		w.Add(state.sql, state.args...)
	}
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
