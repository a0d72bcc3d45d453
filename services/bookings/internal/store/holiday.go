package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// holidayRow returns the columns that are written, by name. Empty lists are empty arrays and not null.
func holidayRow(r domain.HolidayRule) pg.Args {
	return pg.Args{
		"id": r.ID, "name": r.Name, "date_from": r.From.UTC(), "date_to": r.To.UTC(), "recurrence": r.Recurrence,
		"multiplier_bps": r.MultiplierBps, "service_ids": append([]domain.ServiceID{}, r.ServiceIDs...),
		"package_ids": append([]domain.PackageID{}, r.PackageIDs...), "priority": r.Priority, "stackable": r.Stackable, "active": r.Active,
	}
}

var (
	holidayTable  = holidayRow(domain.HolidayRule{}).Columns()
	ruleColumns   = holidayTable.Of("r") + `, r.version, r.created_at, r.updated_at`
	insertHoliday = holidayTable.Insert("holiday_rules", "r")
	putHoliday    = insertHoliday + replace(holidayTable, "r")
)

// HolidayFilter filters a list. Nil fields do not filter.
type HolidayFilter struct{ Active *bool }

// Holiday reads one holiday rule, or returns domain.ErrHolidayNotFound.
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

// PutHoliday writes a holiday rule. An existing rule gets the next version.
func PutHoliday(ctx context.Context, tx pg.Tx, r domain.HolidayRule) error {
	b := &pgx.Batch{}
	b.Queue(putHoliday, holidayRow(r))
	return send(ctx, tx, b, "put holiday rule")
}
