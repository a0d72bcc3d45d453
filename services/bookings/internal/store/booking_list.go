package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/report"
)

// BookingFilter filters a list. Nil and empty fields do not filter. Now determines which holds have lapsed.
type BookingFilter struct {
	Now           time.Time
	Status        []domain.Status
	PaymentStatus []domain.PaymentStatus
	Customer      *domain.CustomerID
	Service       *domain.ServiceID
	Unit          *domain.UnitID
	Package       *domain.PackageID
	EventType     *string
	Number        *string     // as stored
	From, To      *civil.Date // first and last local day of the range, inclusive
	StartsAfter   *time.Time  // inclusive; a day without times starts with its first instant
	StartsBefore  *time.Time  // exclusive
	Metadata      map[string]string
}

// Bookings reads one page.
func Bookings(ctx context.Context, q pg.Q, f BookingFilter, r page.Request) (page.Rows[domain.Booking], error) {
	return page.Search(ctx, q, r, page.List[domain.Booking]{
		Alias:      "b",
		Scan:       bookings.Scan,
		Statement:  func(r page.Request, narrow func(*page.Where)) (string, []any) { return bookingsSQL(f, r, narrow) },
		Conditions: page.MetadataConditions(bookingMetadata, "b", f.Metadata),
	})
}

// BookingKey is the position of a booking in a list.
type BookingKey struct {
	ID        domain.BookingID
	CreatedAt time.Time
}

// BookingIDs reads one page of the bookings that name a customer, without their content.
func BookingIDs(ctx context.Context, q pg.Q, customer domain.CustomerID, r page.Request) (page.Rows[BookingKey], error) {
	w := &page.Where{}
	w.Add(`b.tenant_id = @tenant and b.livemode = @live and b.customer_id = ?`, customer)
	tail, args := w.Page(r, "b")
	return page.Read(ctx, q, r, pgx.RowToStructByName[BookingKey], `select b.id, b.created_at from bookings b `+tail, args...)
}

// bookingStates returns the conditions by state. A pending booking whose hold has lapsed counts as expired.
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

// bookingDays returns the conditions by the first day of a filter. They select bookings that begin on it or later, and those that
// began before and last into it. The latter are always few; separate indexes find them before the list is read.
func bookingDays(f BookingFilter) []page.Alternative {
	switch {
	case f.From == nil:
		return nil
	case f.To != nil && f.To.Before(*f.From):
		return []page.Alternative{page.When(`false`)}
	}
	earlier, args := underWay(*f.From)
	return []page.Alternative{
		page.When(`b.event_day >= ?`, f.From.UTC()),
		page.When(earlier, args...),
	}
}

// underWay returns the condition that a booking began before a local day and lasts into it.
func underWay(first civil.Date) (string, []any) {
	from, near := first.UTC(), first.AddDays(-nights).UTC()
	before := []string{`l.event_day >= ? and l.event_day < ? and ` + nextDay}
	args := []any{near, from, from}
	for _, long := range longer {
		before = append(before, `l.event_day + 0 < ? and l.starts_at < ?::timestamptz + interval '1 day' and `+long)
		args = append(args, near, from, from, from)
	}
	for i, part := range before {
		before[i] = `(select l.id from bookings l where l.tenant_id = @tenant and l.livemode = @live and ` + part +
			` and l.ends_at at time zone l.timezone > ?::date)`
	}
	return `b.id = any(array(` + strings.Join(before, ` union all `) + `)) and b.event_day < ?`, append(args, from)
}

// nights is the largest number of days by which a booking of at most 24 hours can end after its first local day, if a zone skips a
// day, plus one.
const nights = 3

// nextDay is the condition of the index bookings_past_day: the booking lasts into a local day after its first one. A booking that
// ends at midnight does not touch the day that begins then.
const nextDay = `l.ends_at at time zone l.timezone > l.event_day + 1`

// longer contains the conditions for bookings of more than a day that end after a date in UTC, with one day of tolerance for zones.
// Each uses the index for its length. + 0 excludes the day from the index condition, as in during.
var longer = []string{
	`l.ends_at - l.starts_at > interval '1 day' and l.ends_at - l.starts_at <= interval '8 days' and l.starts_at > ?::timestamptz - interval '9 days'`,
	`l.ends_at - l.starts_at > interval '8 days' and l.ends_at - l.starts_at <= interval '64 days' and l.starts_at > ?::timestamptz - interval '65 days'`,
	`l.ends_at - l.starts_at > interval '64 days' and l.ends_at > ?::timestamptz - interval '1 day'`,
}

// bookingsSQL returns the query for the list of a filter. narrow adds conditions to each of its parts.
func bookingsSQL(f BookingFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	return page.Union(r, page.Both(bookingStates(f), bookingDays(f)), func(w *page.Where) (string, []any) { return bookingsOf(w, f, r, narrow) })
}

func bookingsOf(w *page.Where, f BookingFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`b.tenant_id = @tenant and b.livemode = @live`)
	page.Equal(w, `b.customer_id = ?`, f.Customer)
	page.Equal(w, `b.service_id = ?`, f.Service)
	page.Equal(w, `b.unit_id = ?`, f.Unit)
	page.Equal(w, `b.package_id = ?`, f.Package)
	page.Equal(w, `b.event_type = ?`, f.EventType)
	page.Equal(w, `b.number = ?`, f.Number)
	if len(f.PaymentStatus) > 0 {
		w.Add(`b.payment_status = any(?)`, f.PaymentStatus)
	}
	if f.To != nil {
		w.Add(`b.event_day <= ?`, f.To.UTC())
	}
	page.Equal(w, `b.sort_starts_at >= ?`, f.StartsAfter)
	page.Equal(w, `b.sort_starts_at < ?`, f.StartsBefore)
	narrow(w)
	tail, args := w.Page(r, "b")
	return bookings.Select + tail, args
}

// CalendarFilter filters a calendar. Empty fields do not filter. Now determines which holds have lapsed.
type CalendarFilter struct {
	report.Days
	Now     time.Time
	Units   []domain.UnitID
	Service domain.ServiceID
	All     bool // includes bookings that are canceled or expired
}

// BookingsDuring reads the bookings that overlap the days, directly or through their claims, and the bookings of these days without
// times. It reads at most report.MaxBookings, by day.
func BookingsDuring(ctx context.Context, q pg.Q, f CalendarFilter) (page.Rows[report.Booking], error) {
	sql, args := bookingsDuring(f)
	return page.Read(ctx, q, page.Request{Limit: report.MaxBookings}, scanReportBooking, sql, args)
}

// during contains conditions that together select all bookings that may overlap a range of days. Each uses its own index. They
// select bookings whose day is in or near the range and, by their length, bookings that began before. A claim exceeds its booking
// by at most a day at each end, and a booking's day may be in another time zone, so near is larger than both together. + 0 excludes
// the day from the index condition, because it does not bound the parts after the first.
var during = []string{
	`b.event_day >= @near and b.event_day <= @until`,
	`b.event_day + 0 < @near and b.starts_at < @from and b.ends_at - b.starts_at > interval '1 day' and b.ends_at - b.starts_at <= interval '8 days'
		and b.starts_at > @from::timestamptz - interval '9 days'`,
	`b.event_day + 0 < @near and b.starts_at < @from and b.ends_at - b.starts_at > interval '8 days' and b.ends_at - b.starts_at <= interval '64 days'
		and b.starts_at > @from::timestamptz - interval '65 days'`,
	`b.event_day + 0 < @near and b.starts_at < @from and b.ends_at - b.starts_at > interval '64 days' and b.ends_at > @from::timestamptz - interval '1 day'`,
}

const near = 4 // days

func duringArgs(d report.Days, now time.Time) pg.Args {
	return pg.Args{
		"first": d.From.UTC(), "last": d.To.UTC(), "near": d.From.AddDays(-near).UTC(), "until": d.To.AddDays(near).UTC(),
		"from": d.Time.From, "to": d.Time.To, "now": now,
	}
}

// standing is the condition that a booking is neither canceled nor expired.
const standing = `(b.status in ('confirmed', 'completed', 'no_show') or b.status = 'pending' and (b.hold_expires_at is null or b.hold_expires_at > @now))`

const reportColumns = `b.id, b.number, b.status, b.customer_id, b.unit_id, b.guest_count, b.exclusive, b.event_day, b.event_start, b.event_end,
	b.starts_at, b.ends_at, b.timezone, b.currency, b.deposit, b.paid, b.hold_expires_at, b.version`

func bookingsDuring(f CalendarFilter) (string, pg.Args) {
	args := duringArgs(f.Days, f.Now)
	args["limit"] = report.MaxBookings + 1
	where := ""
	if !f.All {
		where += ` and ` + standing
	}
	if len(f.Units) > 0 {
		where += ` and b.unit_id = any(@units::uuid[])`
		args["units"] = f.Units
	}
	if !f.Service.IsZero() {
		where += ` and b.service_id = @service`
		args["service"] = f.Service
	}
	parts := make([]string, len(during))
	for i, part := range during {
		parts[i] = fmt.Sprintf(`select `+reportColumns+` from bookings b left join lateral (
				select k.starts_at, k.ends_at from unit_claims k where k.tenant_id = @tenant and k.livemode = @live
					and k.booking_id = case when b.session_id is null then b.id else b.session_id end offset 0) k on true
			where b.tenant_id = @tenant and b.livemode = @live and %s%s
			  and (b.starts_at is null or b.starts_at < @to::timestamptz + interval '1 day' and b.ends_at > @from::timestamptz - interval '1 day')
			  and (b.starts_at < @to and b.ends_at > @from or k.starts_at < @to and k.ends_at > @from
				or b.starts_at is null and b.event_day >= @first and b.event_day <= @last)`, part, where)
	}
	parts[0] += ` order by b.event_day, b.id limit @limit`
	return `select ` + reportColumns + `, c.name
		from (select * from ((` + strings.Join(parts, `) union all (`) + `)) b order by b.event_day, b.id limit @limit) b` + customerOf + `
		order by b.event_day, b.id`, args
}

// customerOf joins the name of the customer of a booking b, for lists with few rows.
const customerOf = ` left join lateral (
		select c.name from customers c where c.tenant_id = @tenant and c.livemode = @live and c.id = b.customer_id and not c.erased offset 0) c on true`

// HoldsUntil reads the holds that lapse between two instants, earliest first, at most report.MaxDue.
func HoldsUntil(ctx context.Context, q pg.Q, from, to time.Time) ([]report.Booking, error) {
	return pg.Many(ctx, q, scanReportBooking, `
		select `+reportColumns+`, c.name from (
			select `+reportColumns+` from bookings b
			where b.tenant_id = @tenant and b.livemode = (select @live::boolean) and b.status = 'pending' and b.hold_expires_at is not null
			  and b.hold_expires_at > @from and b.hold_expires_at < @to
			order by b.hold_expires_at, b.id limit @limit) b`+customerOf+`
		order by b.hold_expires_at, b.id`, pg.Args{"from": from, "to": to, "limit": report.MaxDue})
}

// UnpaidDeposits reads the active bookings from a day on, including those in progress on it, whose deposit is not paid. The nearest
// day comes first. It returns at most report.MaxDue of the first report.MaxSearched bookings.
func UnpaidDeposits(ctx context.Context, q pg.Q, from civil.Date, now time.Time) ([]report.Booking, error) {
	args := pg.Args{"from": from.UTC(), "now": now, "limit": report.MaxDue, "searched": report.MaxSearched}
	earlier, values := underWay(from)
	for i, v := range values {
		name := fmt.Sprintf("day%d", i)
		args[name] = v
		earlier = strings.Replace(earlier, "?", "@"+name, 1)
	}
	return pg.Many(ctx, q, scanReportBooking, `
		select `+reportColumns+`, c.name from (
			select `+reportColumns+` from (
				(select `+reportColumns+`, b.payment_status from bookings b where b.tenant_id = @tenant and b.livemode = @live and `+earlier+` limit @searched)
				union all
				(select `+reportColumns+`, b.payment_status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.event_day >= @from
				order by b.event_day limit @searched)) b
			where b.deposit > 0 and b.paid < b.deposit and b.payment_status <> all('{deposit_paid,paid,credited}')
			  and (b.status = 'confirmed' or b.status = 'pending' and (b.hold_expires_at is null or b.hold_expires_at > @now))
			order by b.event_day, b.id limit @limit) b`+customerOf+`
		order by b.event_day, b.id`, args)
}

func scanReportBooking(row pgx.CollectableRow) (b report.Booking, err error) {
	err = row.Scan(&b.ID, &b.Number, &b.Status, &b.CustomerID, &b.UnitID, &b.GuestCount, &b.Exclusive, &b.Day, &b.Start, &b.End, &b.StartsAt, &b.EndsAt,
		civil.ZoneOf(&b.Loc), money.CurrencyOf(&b.Deposit, &b.Paid), &b.Deposit.Minor, &b.Paid.Minor, &b.HoldExpiresAt, &b.Version, &b.CustomerName)
	return b, err
}

// BookedDuring reads the bookings that statistics count: those of the days, and those with a unit that overlap the days. It reads
// at most report.MaxBooked + 1 and omits canceled and expired bookings.
func BookedDuring(ctx context.Context, q pg.Q, d report.Days, now time.Time) ([]report.Booked, error) {
	parts := make([]string, len(during))
	for i, part := range during {
		parts[i] = `select b.event_day, b.status, b.currency, b.gross, b.paid, b.refunded, b.unit_id, b.event_start is not null, b.starts_at, b.ends_at
			from bookings b where b.tenant_id = @tenant and b.livemode = @live and ` + part + ` and ` + standing + `
			  and (b.event_day between @first and @last or b.unit_id is not null and b.starts_at < @to and b.ends_at > @from)`
	}
	args := duringArgs(d, now)
	args["limit"] = report.MaxBooked + 1
	return pg.Many(ctx, q, scanBooked, strings.Join(parts, ` union all `)+` limit @limit`, args)
}

func scanBooked(row pgx.CollectableRow) (report.Booked, error) {
	var b report.Booked
	var from, to *time.Time
	err := row.Scan(&b.Day, &b.Status, &b.Currency, &b.Gross, &b.Paid, &b.Refunded, &b.Unit, &b.Timed, &from, &to)
	if from != nil && to != nil {
		b.During = domain.Span{From: *from, To: *to}
	}
	return b, err
}
