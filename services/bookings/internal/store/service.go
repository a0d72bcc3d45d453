package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const serviceColumns = `s.id, s.name, s.description, s.duration_minutes, s.slot_step_minutes, s.buffer_before_minutes,
	s.buffer_after_minutes, s.active, s.version, s.created_at, s.updated_at,
	array(select us.unit_id from unit_services us where us.tenant_id = s.tenant_id and us.livemode = s.livemode and us.service_id = s.id order by us.unit_id) as unit_ids`

// ServiceFilter narrows a list; nil fields do not.
type ServiceFilter struct {
	Active *bool
	ID     *domain.ServiceID
}

// Service reads one service, or domain.ErrServiceNotFound.
func Service(ctx context.Context, q pg.Q, id domain.ServiceID) (domain.Service, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Service], domain.ErrServiceNotFound,
		`select `+serviceColumns+` from services s where s.tenant_id = @tenant and s.livemode = @live and s.id = @id`, pg.Args{"id": id})
}

// ServicesByID reads the services of a list, by id.
func ServicesByID(ctx context.Context, q pg.Q, list []domain.ServiceID) ([]domain.Service, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Service],
		`select `+serviceColumns+` from services s where s.tenant_id = @tenant and s.livemode = @live and s.id = any(@ids::uuid[]) order by s.id`, pg.Args{"ids": list})
}

// Services reads one page.
func Services(ctx context.Context, q pg.Q, f ServiceFilter, r page.Request) (page.Rows[domain.Service], error) {
	w := &page.Where{}
	w.Add(`s.tenant_id = @tenant and s.livemode = @live`)
	if f.Active != nil {
		w.Add(`s.active = ?`, *f.Active)
	}
	if f.ID != nil {
		w.Add(`s.id = ?`, *f.ID)
	}
	tail, args := w.Page(r, "s")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.Service], `select `+serviceColumns+` from services s `+tail, args...)
}
