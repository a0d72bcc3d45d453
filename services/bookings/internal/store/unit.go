package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var units = pg.NewTable("units", "u", domain.ErrUnitNotFound, func(u *domain.Unit) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &u.ID},
		Values: pg.F{
			"name", &u.Name, "description", &u.Description, "status", &u.Status, "capacity", &u.Capacity, "booking_mode", &u.BookingMode,
			"opening_hours", pg.JSON(&u.OpeningHours),
		},
		Read: pg.F{"version", &u.Version, "created_at", &u.CreatedAt, "updated_at", &u.UpdatedAt, `array(select us.service_id from unit_services us
			where us.tenant_id = u.tenant_id and us.livemode = u.livemode and us.unit_id = u.id order by us.service_id) as service_ids`, &u.ServiceIDs},
	}
})

// unitLinks returns the unit's links to services.
func unitLinks(u domain.Unit) pg.Args { return pg.Args{"id": u.ID, "service_ids": u.ServiceIDs} }

const linkUnit = `
	insert into unit_services (tenant_id, livemode, unit_id, service_id)
	select @tenant, @live, @id, unnest(@service_ids::uuid[]) on conflict do nothing`

// UnitFilter filters a list. Nil fields do not filter. Active means the status active.
type UnitFilter struct {
	Active  *bool
	Service *domain.ServiceID
}

// Unit reads one unit, or returns domain.ErrUnitNotFound.
func Unit(ctx context.Context, q pg.Q, id domain.UnitID) (domain.Unit, error) {
	return units.Get(ctx, q, id, "")
}

// UnitsByID reads the units of a list, by id.
func UnitsByID(ctx context.Context, q pg.Q, list []domain.UnitID) ([]domain.Unit, error) {
	return units.Many(ctx, q, `u.id = any(@ids::uuid[]) order by u.id`, pg.Args{"ids": list})
}

// UnitHours reads the status and the opening hours of the active units and of those in the list.
func UnitHours(ctx context.Context, q pg.Q, list []domain.UnitID) ([]domain.Unit, error) {
	return pg.Many(ctx, q, pgx.RowToStructByNameLax[domain.Unit], `select u.id, u.status, u.opening_hours from units u
		where u.tenant_id = @tenant and u.livemode = @live and (u.status = 'active' or u.id = any(@ids::uuid[]))`, pg.Args{"ids": list})
}

// Units reads one page.
func Units(ctx context.Context, q pg.Q, f UnitFilter, r page.Request) (page.Rows[domain.Unit], error) {
	w := &page.Where{}
	w.Add(`u.tenant_id = @tenant and u.livemode = @live`)
	page.Equal(w, `(u.status = 'active') = ?`, f.Active)
	page.Equal(w, `u.id = any(array(select us.unit_id from unit_services us where us.tenant_id = @tenant and us.livemode = @live and us.service_id = ?))`, f.Service)
	tail, args := w.Page(r, "u")
	return page.Read(ctx, q, r, units.Scan, units.Select+tail, args...)
}

// LockUnits locks the booking's current unit and the unit to which it may move, by ascending id, until the transaction ends. Each
// write of claims does this first: parallel inserts under the exclusion constraint alone would deadlock.
func LockUnits(ctx context.Context, tx pg.Tx, booking domain.BookingID, to domain.UnitID) ([]domain.UnitID, error) {
	locked, err := pg.Many(ctx, tx, pgx.RowTo[domain.UnitID], `
		select u.id from units u
		where u.tenant_id = @tenant and u.livemode = @live
		  and (u.id = @to or u.id = (select b.unit_id from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @booking))
		order by u.id for no key update`, pg.Args{"booking": booking, "to": to})
	if err != nil {
		return nil, fmt.Errorf("lock units: %w", err)
	}
	return locked, nil
}

// PutUnit writes a unit and its links. An existing unit gets the next version, as does each service whose links change. PutUnit
// returns these services.
func PutUnit(ctx context.Context, tx pg.Tx, u domain.Unit) (linked []domain.ServiceID, err error) {
	b := &pgx.Batch{}
	b.Queue(units.Put(), units.Args(u))
	b.Queue(`
		with gone as (delete from unit_services where tenant_id = @tenant and livemode = @live and unit_id = @id
			and service_id <> all(@service_ids::uuid[]) returning service_id),
		fresh as (`+linkUnit+` returning service_id)
		update services s set version = s.version + 1, updated_at = clock_timestamp()
		where s.tenant_id = @tenant and s.livemode = @live and s.id in (select service_id from gone union all select service_id from fresh)
		returning s.id`, unitLinks(u)).Query(collectInto(&linked))
	return pg.SendFor(ctx, tx, b, "put unit", &linked)
}
