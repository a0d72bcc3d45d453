package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const ruleColumns = `r.id, r.name, r.date_from, r.date_to, r.recurrence, r.multiplier_bps, r.service_ids, r.package_ids,
	r.priority, r.stackable, r.active, r.version, r.created_at, r.updated_at`

// HolidayFilter narrows a list; nil fields do not.
type HolidayFilter struct{ Active *bool }

// Holiday reads one holiday rule, or domain.ErrHolidayNotFound.
func Holiday(ctx context.Context, q pg.Q, id domain.HolidayID) (domain.HolidayRule, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.HolidayRule], domain.ErrHolidayNotFound,
		`select `+ruleColumns+` from holiday_rules r where r.tenant_id = @tenant and r.livemode = @live and r.id = @id`, pg.Args{"id": id})
}

// Holidays reads one page.
func Holidays(ctx context.Context, q pg.Q, f HolidayFilter, r page.Request) (page.Rows[domain.HolidayRule], error) {
	w := &page.Where{}
	w.Add(`r.tenant_id = @tenant and r.livemode = @live`)
	if f.Active != nil {
		w.Add(`r.active = ?`, *f.Active)
	}
	tail, args := w.Page(r, "r")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.HolidayRule], `select `+ruleColumns+` from holiday_rules r `+tail, args...)
}
