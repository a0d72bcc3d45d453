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
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/domain/report"
)

var closures = pg.NewTable("closures", "c", domain.ErrClosureNotFound, func(c *domain.Closure) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &c.ID},
		Values: pg.F{
			"name", &c.Name, "unit_ids", &c.UnitIDs, "date_from", &c.From, "date_to", &c.To, "starts_at", &c.StartsAt, "ends_at", &c.EndsAt,
			"timezone", &c.Timezone,
		},
		Read: pg.F{"version", &c.Version, "created_at", &c.CreatedAt, "updated_at", &c.UpdatedAt},
	}
})

// ClosureFilter filters a list. Nil fields do not filter. From and To are the limits of the time that a closure overlaps.
type ClosureFilter struct {
	Unit     *domain.UnitID
	From, To *time.Time
}

// Closure reads one closure, or returns domain.ErrClosureNotFound.
func Closure(ctx context.Context, q pg.Q, id domain.ClosureID) (domain.Closure, error) {
	return closures.Get(ctx, q, id, "")
}

// Closures reads one page. A unit that the caller does not have selects nothing.
func Closures(ctx context.Context, q pg.Q, f ClosureFilter, r page.Request) (page.Rows[domain.Closure], error) {
	w := &page.Where{}
	w.Add(`c.tenant_id = @tenant and c.livemode = @live`)
	if f.Unit != nil {
		w.Add(`(c.unit_ids is null or ? = any(c.unit_ids))`, *f.Unit)
		w.Add(`exists (select from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = ?)`, *f.Unit)
	}
	page.Equal(w, `c.ends_at > ?`, f.From)
	page.Equal(w, `c.starts_at < ?`, f.To)
	tail, args := w.Page(r, "c")
	return page.Read(ctx, q, r, closures.Scan, closures.Select+tail, args...)
}

// closedDuring is the condition that a closure overlaps a time and closes a unit; @unit is null for all units.
const closedDuring = `c.ends_at > @from and c.starts_at < @to and (@unit::uuid is null or c.unit_ids is null or @unit = any(c.unit_ids))`

// ClosuresDuring reads the closures of the unit, or of any unit if unit is nil, that overlap the time, in the order of their starts.
// It returns at most limit of them.
func ClosuresDuring(ctx context.Context, q pg.Q, during domain.Span, unit *domain.UnitID, limit int) ([]domain.Closure, error) {
	return closures.Many(ctx, q, closedDuring+` order by c.starts_at, c.id limit @limit`, pg.Args{"from": during.From, "to": during.To, "unit": unit, "limit": limit})
}

// CountClosures counts the caller's closures that have and have not ended by now.
func CountClosures(ctx context.Context, tx pg.Tx, now time.Time) (limit.Count, error) {
	n, err := pg.One(ctx, tx, pgx.RowToStructByName[limit.Count], pgx.ErrNoRows, `
		select count(*) filter (where ends_at > @now) as active, count(*) filter (where ends_at <= @now) as inactive
		from closures where tenant_id = @tenant and livemode = @live`, pg.Args{"now": now})
	if err != nil {
		return limit.Count{}, fmt.Errorf("count closures: %w", err)
	}
	return n, nil
}

// LockClosed locks the units of a closure by ascending id until the transaction ends; nil means all units. Each write of a booking
// locks its unit too. Therefore, it either commits before the closure reads its conflicts, or sees the closure.
func LockClosed(ctx context.Context, tx pg.Tx, units []domain.UnitID) error {
	return pg.Exec(ctx, tx, "lock units", `select from units u where u.tenant_id = @tenant and u.livemode = @live
		and (@units::uuid[] is null or u.id = any(@units)) order by u.id for no key update`, pg.Args{"units": units})
}

// PutClosure writes a closure. An existing closure gets the next version. Its units must be locked.
func PutClosure(ctx context.Context, tx pg.Tx, c domain.Closure) error {
	return pg.Exec(ctx, tx, "put closure", closures.Put(), closures.Args(c))
}

// DeleteClosure deletes a closure.
func DeleteClosure(ctx context.Context, tx pg.Tx, id domain.ClosureID) error {
	return pg.Exec(ctx, tx, "delete closure", `delete from closures where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
}

// Conflicts reads the bookings that hold a unit of the closure and overlap it, earliest first, at most domain.MaxConflicts. now
// determines which holds have lapsed.
func Conflicts(ctx context.Context, q pg.Q, c domain.Closure, now time.Time) ([]domain.BookingID, error) {
	sql, args, err := conflicts(c, now)
	if err != nil {
		return nil, err
	}
	return pg.Many(ctx, q, pgx.RowTo[domain.BookingID], sql, args)
}

func conflicts(c domain.Closure, now time.Time) (string, pg.Args, error) {
	loc, err := civil.Location(c.Timezone)
	if err != nil {
		return "", nil, fmt.Errorf("closure %s: %w", c.ID, err)
	}
	from, to := c.Days(loc)
	args := duringArgs(report.Days{Range: availability.Range{From: from, To: to}, Time: c.Span(), Loc: loc}, now)
	args["units"], args["limit"] = c.UnitIDs, domain.MaxConflicts
	parts := make([]string, len(during))
	for i, part := range during {
		parts[i] = `select b.id, b.event_day, b.starts_at from bookings b where b.tenant_id = @tenant and b.livemode = @live and ` + part + `
			and (b.status = 'confirmed' or b.status = 'pending' and (b.hold_expires_at is null or b.hold_expires_at > @now))
			and b.unit_id is not null and (@units::uuid[] is null or b.unit_id = any(@units)) and b.starts_at < @to and b.ends_at > @from`
	}
	parts[0] += ` order by b.event_day, b.starts_at, b.id limit @limit`
	return `select id from ((` + strings.Join(parts, `) union all (`) + `)) b order by event_day, starts_at, id limit @limit`, args, nil
}
