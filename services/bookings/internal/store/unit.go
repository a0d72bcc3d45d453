package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const unitColumns = `u.id, u.name, u.description, u.status, u.capacity, u.opening_hours, u.version, u.created_at, u.updated_at,
	array(select us.service_id from unit_services us where us.tenant_id = u.tenant_id and us.livemode = u.livemode and us.unit_id = u.id order by us.service_id) as service_ids`

// UnitFilter narrows a list; nil fields do not. Active means the status active.
type UnitFilter struct {
	Active  *bool
	Service *domain.ServiceID
}

// Unit reads one unit, or domain.ErrUnitNotFound.
func Unit(ctx context.Context, q pg.Q, id domain.UnitID) (domain.Unit, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Unit], domain.ErrUnitNotFound,
		`select `+unitColumns+` from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = @id`, pg.Args{"id": id})
}

// UnitsByID reads the units of a list, by id.
func UnitsByID(ctx context.Context, q pg.Q, list []domain.UnitID) ([]domain.Unit, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Unit],
		`select `+unitColumns+` from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = any(@ids::uuid[]) order by u.id`, pg.Args{"ids": list})
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
	if f.Active != nil {
		w.Add(`(u.status = 'active') = ?`, *f.Active)
	}
	if f.Service != nil {
		w.Add(`u.id = any(array(select us.unit_id from unit_services us where us.tenant_id = @tenant and us.livemode = @live and us.service_id = ?))`, *f.Service)
	}
	tail, args := w.Page(r, "u")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.Unit], `select `+unitColumns+` from units u `+tail, args...)
}

// LockUnits locks the booking's present unit and the one it may move to, by ascending id, until the transaction ends.
// Each write of claims does this first: parallel inserts under the bare exclusion constraint deadlock.
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
