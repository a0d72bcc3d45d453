package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var services = pg.NewTable("services", "s", domain.ErrServiceNotFound, func(s *domain.Service) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &s.ID},
		Values: pg.F{
			"name", &s.Name, "description", &s.Description, "duration_minutes", &s.DurationMinutes, "slot_step_minutes", &s.SlotStepMinutes,
			"buffer_before_minutes", &s.BufferBeforeMinutes, "buffer_after_minutes", &s.BufferAfterMinutes, "active", &s.Active,
			"default_taxes", &s.DefaultTaxes,
		},
		Read: pg.F{"version", &s.Version, "created_at", &s.CreatedAt, "updated_at", &s.UpdatedAt, `array(select us.unit_id from unit_services us
			where us.tenant_id = s.tenant_id and us.livemode = s.livemode and us.service_id = s.id order by us.unit_id) as unit_ids`, &s.UnitIDs},
	}
})

// ServiceFilter filters a list. Nil fields do not filter.
type ServiceFilter struct {
	Active *bool
	ID     *domain.ServiceID
}

// Service reads one service, or returns domain.ErrServiceNotFound.
func Service(ctx context.Context, q pg.Q, id domain.ServiceID) (domain.Service, error) {
	return services.Get(ctx, q, id, "")
}

// ServicesByID reads the services of a list, by id.
func ServicesByID(ctx context.Context, q pg.Q, list []domain.ServiceID) ([]domain.Service, error) {
	return services.Many(ctx, q, `s.id = any(@ids::uuid[]) order by s.id`, pg.Args{"ids": list})
}

// ActiveServices reads all active services.
func ActiveServices(ctx context.Context, q pg.Q) ([]domain.Service, error) {
	return pg.Many(ctx, q, services.Scan, bare(services.Own)+`s.active`, pg.Args{})
}

// Services reads one page.
func Services(ctx context.Context, q pg.Q, f ServiceFilter, r page.Request) (page.Rows[domain.Service], error) {
	w := &page.Where{}
	w.Add(`s.tenant_id = @tenant and s.livemode = @live`)
	page.Equal(w, `s.active = ?`, f.Active)
	page.Equal(w, `s.id = ?`, f.ID)
	tail, args := w.Page(r, "s")
	return page.Read(ctx, q, r, services.Scan, services.Select+tail, args...)
}

// PutService writes a service and its links. An existing service gets the next version, as does each unit whose links change.
// PutService returns these units.
func PutService(ctx context.Context, tx pg.Tx, s domain.Service) (linked []domain.UnitID, err error) {
	links := pg.Args{"id": s.ID, "unit_ids": s.UnitIDs}
	b := &pgx.Batch{}
	b.Queue(services.Put(), services.Args(s))
	// Bookings also lock units by ascending id.
	b.Queue(`
		select from units u where u.tenant_id = @tenant and u.livemode = @live and (u.id = any(@unit_ids::uuid[])
			or u.id in (select us.unit_id from unit_services us where us.tenant_id = @tenant and us.livemode = @live and us.service_id = @id))
		order by u.id for no key update`, links)
	b.Queue(`
		with gone as (delete from unit_services where tenant_id = @tenant and livemode = @live and service_id = @id
			and unit_id <> all(@unit_ids::uuid[]) returning unit_id),
		fresh as (insert into unit_services (tenant_id, livemode, service_id, unit_id)
			select @tenant, @live, @id, unnest(@unit_ids::uuid[]) on conflict do nothing returning unit_id)
		update units u set version = u.version + 1, updated_at = clock_timestamp()
		where u.tenant_id = @tenant and u.livemode = @live and u.id in (select unit_id from gone union all select unit_id from fresh)
		returning u.id`, links).Query(collectInto(&linked))
	return pg.SendFor(ctx, tx, b, "put service", &linked)
}
