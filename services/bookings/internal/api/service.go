package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
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
	return sendOne(c, s.Version, view.Service(s, mode(ctx)))
}

func (a *API) listServices(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	req, err := a.Pages.Parse(ctx, q, "listServices")
	if err != nil {
		return err
	}
	rows, err := store.Services(ctx, req.Reader(ctx, a.DB), store.ServiceFilter{Active: filterBool(q, "active")}, req)
	if err != nil {
		return err
	}
	return sendPage(c, a.Pages, req, rows, func(s domain.Service) page.Place {
		return page.Place{ID: s.ID.UUID(), Created: s.CreatedAt, Updated: s.UpdatedAt}
	}, func(s domain.Service) api.Service { return view.Service(s, mode(ctx)) })
}

func (a *API) service(ctx context.Context, id string) (domain.Service, error) {
	return found(ctx, a.DB, id, domain.ErrServiceNotFound, store.Service)
}
