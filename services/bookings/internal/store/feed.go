package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var feeds = pg.NewTable("calendar_feeds", "f", domain.ErrFeedNotFound, func(f *domain.Feed) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &f.ID, "name", &f.Name, "unit_id", &f.UnitID, "include_details", &f.IncludeDetails, "created_by", &f.CreatedBy},
		Read:  pg.F{"version", &f.Version, "created_at", &f.CreatedAt, "updated_at", &f.UpdatedAt},
	}
})

// Feed reads one feed, or returns domain.ErrFeedNotFound.
func Feed(ctx context.Context, q pg.Q, id domain.FeedID) (domain.Feed, error) {
	return feeds.Get(ctx, q, id, "")
}

// Feeds reads one page of the feeds of a unit, or of all feeds if unit is nil.
func Feeds(ctx context.Context, q pg.Q, unit *domain.UnitID, r page.Request) (page.Rows[domain.Feed], error) {
	w := &page.Where{}
	w.Add(`f.tenant_id = @tenant and f.livemode = @live`)
	page.Equal(w, `f.unit_id = ?`, unit)
	tail, args := w.Page(r, "f")
	return page.Read(ctx, q, r, feeds.Scan, feeds.Select+tail, args...)
}

// CountFeeds counts the feeds of the caller. Until the transaction ends, other calls for the same tenant and mode wait.
func CountFeeds(ctx context.Context, tx pg.Tx) (int, error) {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('calendar feeds'),
		hashtext(current_setting('app.tenant_id') || current_setting('app.livemode')))`)
	if err != nil {
		return 0, fmt.Errorf("lock feeds: %w", err)
	}
	return pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows,
		`select count(*) from calendar_feeds where tenant_id = @tenant and livemode = @live`, pg.Args{})
}

// InsertFeed writes a new feed with the hash of its token and the operator's time zone, and returns it with its times. Its creator
// becomes its holder.
func InsertFeed(ctx context.Context, tx pg.Tx, f domain.Feed, hash []byte, timezone string) (domain.Feed, error) {
	args := feeds.Args(f)
	args["timezone"], args["hash"] = timezone, hash
	return pg.One(ctx, tx, feeds.Scan, domain.ErrFeedNotFound, feeds.InsertNow("", "holder", "@created_by", "timezone", "@timezone", "hash", "@hash")+
		` returning `+feeds.Columns, args)
}

// DeleteFeed deletes a feed. It returns domain.ErrFeedNotFound if the feed no longer exists.
func DeleteFeed(ctx context.Context, tx pg.Tx, id domain.FeedID) error {
	n, err := pg.Affect(ctx, tx, "delete feed", `delete from calendar_feeds where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
	if err == nil && n == 0 {
		return domain.ErrFeedNotFound
	}
	return err
}

// HeldFeed is a feed with the credential that holds it.
type HeldFeed struct {
	TenantID ids.Tenant
	Livemode bool
	ID       domain.FeedID
	Holder   string
}

// HeldFeeds returns up to limit feeds of all tenants and modes that a credential holds, after the given one. tx has the worker
// role.
func HeldFeeds(ctx context.Context, tx pg.Tx, after HeldFeed, limit int) ([]HeldFeed, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[HeldFeed], `select tenant_id, livemode, id, holder from calendar_feeds
		where (tenant_id, livemode, id) > ($1::uuid, $2, $3::uuid) order by tenant_id, livemode, id limit $4`,
		after.TenantID.UUID(), after.Livemode, after.ID.UUID(), limit)
}

// FeedHolder returns the credential that holds a feed, "" if none does. It returns domain.ErrFeedNotFound if the feed no longer exists.
func FeedHolder(ctx context.Context, q pg.Q, id domain.FeedID) (string, error) {
	return pg.One(ctx, q, pgx.RowTo[string], domain.ErrFeedNotFound,
		`select holder from calendar_feeds where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
}

// PassFeed transfers a feed from one credential to another.
func PassFeed(ctx context.Context, tx pg.Tx, id domain.FeedID, from, to string) error {
	return pg.Exec(ctx, tx, "pass a feed on", `update calendar_feeds set holder = @to where tenant_id = @tenant and livemode = @live and id = @id and holder = @from`,
		pg.Args{"id": id, "from": from, "to": to})
}

// OpenFeed is a feed found by its token, with the tenant and mode that it belongs to.
type OpenFeed struct {
	TenantID       ids.Tenant
	Livemode       bool
	ID             domain.FeedID
	Name           string
	UnitID         domain.UnitID
	IncludeDetails bool
	Timezone       string
	Clock          *time.Time // the tenant's test clock
}

// FeedByHash finds a feed of any tenant by the hash of its token, or returns domain.ErrFeedNotFound.
func FeedByHash(ctx context.Context, q pg.Q, hash []byte) (OpenFeed, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[OpenFeed], domain.ErrFeedNotFound, `
		select tenant_id, livemode, id, name, unit_id, include_details, timezone, clock from calendar_feed_by_hash(@hash)`,
		pg.Args{"hash": hash})
}

// CalendarRange specifies the bookings that a calendar shows: those of the days From to To, of one unit or of all (zero).
type CalendarRange struct {
	From, Today, To civil.Date
	Unit            domain.UnitID
	Details         bool
}

// Calendar reads the bookings of a calendar within its bounds, by day. It reads both the bookings from today on and the earlier
// ones starting with those nearest to today.
func Calendar(ctx context.Context, q pg.Q, r CalendarRange) ([]domain.CalendarEntry, error) {
	sql, args := calendarSQL(r)
	return pg.Many(ctx, q, scanCalendarEntry, sql, args)
}

// calendarSQL joins future and past bookings. Each part is read along its index, starting from today.
func calendarSQL(r CalendarRange) (string, pg.Args) {
	ofUnit := ""
	if !r.Unit.IsZero() {
		ofUnit = " and b.unit_id = @unit"
	}
	sql := calendarPart(`b.event_day >= @today and b.event_day <= @to`+ofUnit, ``, "ahead") + ` union all ` +
		calendarPart(`b.event_day < @today and b.event_day >= @from`+ofUnit, ` desc`, "behind") + ` order by event_day, id`
	return sql, pg.Args{
		"from": r.From.UTC(), "today": r.Today.UTC(), "to": r.To.UTC(), "unit": r.Unit, "details": r.Details,
		"ahead": domain.CalendarAhead, "behind": domain.CalendarBehind,
		"bytes_ahead": domain.CalendarBytesAhead, "bytes_behind": domain.CalendarBytesBehind,
	}
}

// eventBytes is the approximate size of an event without its texts.
const eventBytes = 320

func calendarPart(where, order, part string) string {
	return fmt.Sprintf(`
		select id, number, status, version, updated_at, hold_expires_at, event_day, event_start, starts_at, ends_at, timezone, title, seats, customer, notes
		from (
			select e.*, sum(%[4]d + octet_length(coalesce(title, '')) + octet_length(coalesce(customer, '')) + octet_length(coalesce(notes, '')))
				over (order by event_day%[2]s, id%[2]s rows unbounded preceding) as bytes
			from (
				select b.id, b.number, b.status, b.version, b.updated_at, b.hold_expires_at, b.event_day, b.event_start, b.starts_at, b.ends_at,
					b.timezone, coalesce(u.name, s.name, p.name) as title,
					case when u.booking_mode = 'seats' then case when b.exclusive then 0 else coalesce(b.guest_count, 1) end end as seats,
					case when @details and not coalesce(c.erased, false) then c.name end as customer,
					case when @details and not coalesce(c.erased, false) then b.notes end as notes
				from (select * from bookings b where b.tenant_id = @tenant and b.livemode = @live and %[1]s
					order by b.event_day%[2]s, b.id%[2]s limit @%[3]s) b
				left join units u on u.tenant_id = @tenant and u.livemode = @live and u.id = b.unit_id
				left join services s on s.tenant_id = @tenant and s.livemode = @live and s.id = b.service_id
				left join packages p on p.tenant_id = @tenant and p.livemode = @live and p.id = b.package_id
				left join customers c on c.tenant_id = @tenant and c.livemode = @live and c.id = b.customer_id
			) e
		) %[3]s where bytes <= @bytes_%[3]s`, where, order, part, eventBytes)
}

func scanCalendarEntry(row pgx.CollectableRow) (e domain.CalendarEntry, err error) {
	err = row.Scan(&e.ID, &e.Number, &e.Status, &e.Version, &e.UpdatedAt, &e.HoldExpiresAt, &e.Day, &e.Start, &e.StartsAt, &e.EndsAt,
		civil.ZoneOf(&e.Loc), &e.Title, &e.Seats, &e.Customer, &e.Notes)
	return e, err
}
