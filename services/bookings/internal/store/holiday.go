package store

import (
	"context"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var rules = pg.NewTable("holiday_rules", "r", domain.ErrHolidayNotFound, func(r *domain.HolidayRule) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &r.ID},
		Values: pg.F{
			"name", &r.Name, "date_from", &r.From, "date_to", &r.To, "recurrence", &r.Recurrence, "multiplier_bps", &r.MultiplierBps,
			"service_ids", pg.Array(&r.ServiceIDs), "package_ids", pg.Array(&r.PackageIDs), "priority", &r.Priority, "stackable", &r.Stackable,
			"active", &r.Active,
		},
		Read: pg.F{"version", &r.Version, "created_at", &r.CreatedAt, "updated_at", &r.UpdatedAt},
	}
})

// HolidayFilter filters a list. Nil fields do not filter.
type HolidayFilter struct{ Active *bool }

// Holiday reads one holiday rule, or returns domain.ErrHolidayNotFound.
func Holiday(ctx context.Context, q pg.Q, id domain.HolidayID) (domain.HolidayRule, error) {
	return rules.Get(ctx, q, id, "")
}

// Holidays reads one page.
func Holidays(ctx context.Context, q pg.Q, f HolidayFilter, r page.Request) (page.Rows[domain.HolidayRule], error) {
	w := &page.Where{}
	w.Add(`r.tenant_id = @tenant and r.livemode = @live`)
	page.Equal(w, `r.active = ?`, f.Active)
	tail, args := w.Page(r, "r")
	return page.Read(ctx, q, r, rules.Scan, rules.Select+tail, args...)
}

// PutHoliday writes a holiday rule. An existing rule gets the next version.
func PutHoliday(ctx context.Context, tx pg.Tx, r domain.HolidayRule) error {
	return pg.Exec(ctx, tx, "put holiday rule", rules.Put(), rules.Args(r))
}
