package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *API) getService(c *gin.Context) error {
	ctx := c.Request.Context()
	s, err := a.service(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, s.Version, view.Service(s, mode(ctx)))
}

func (a *API) createService(c *gin.Context) error {
	return create(c, &a.Catalogue.Services, func(b api.ServiceCreate) func(*domain.Service) error {
		return editService(api.ServiceUpdate{
			Name: &b.Name, Description: b.Description, DurationMinutes: b.DurationMinutes, SlotStepMinutes: b.SlotStepMinutes,
			BufferBeforeMinutes: b.BufferBeforeMinutes, BufferAfterMinutes: b.BufferAfterMinutes, Active: b.Active, UnitIds: b.UnitIds,
		})
	})
}

func (a *API) updateService(c *gin.Context) error {
	return update(c, &a.Catalogue.Services, domain.ErrServiceNotFound, editService)
}

func (a *API) listServices(c *gin.Context) error {
	q := httpx.Query(c)
	id, none := filterID[domain.ServicePrefix](q, "service_id")
	f := store.ServiceFilter{Active: filterBool(q, "active"), ID: id}
	return list(a, c, "listServices", none, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Service], error) {
		return store.Services(ctx, db, f, r)
	}, func(t domain.Service) page.Place {
		return page.Place{ID: t.ID.UUID(), Created: t.CreatedAt, Updated: t.UpdatedAt}
	}, view.Service)
}

func (a *API) service(ctx context.Context, id string) (domain.Service, error) {
	return found(ctx, a.DB, id, domain.ErrServiceNotFound, store.Service)
}

// editService makes the changes that a body asks for.
func editService(b api.ServiceUpdate) func(*domain.Service) error {
	return func(s *domain.Service) (err error) {
		set(&s.Name, b.Name)
		setOrNull(&s.Description, b.Description)
		setOrNull(&s.DurationMinutes, b.DurationMinutes)
		setOrNull(&s.SlotStepMinutes, b.SlotStepMinutes)
		set(&s.BufferBeforeMinutes, b.BufferBeforeMinutes)
		set(&s.BufferAfterMinutes, b.BufferAfterMinutes)
		set(&s.Active, b.Active)
		return setIDs(&s.UnitIDs, b.UnitIds, "unit_ids", "No such unit.")
	}
}
