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

func (a *API) getUnit(c *gin.Context) error {
	ctx := c.Request.Context()
	u, err := a.unit(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	body, err := view.Unit(u, mode(ctx))
	if err != nil {
		return err
	}
	return sendOne(c, u.Version, body)
}

func (a *API) listUnits(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	req, err := a.Pages.Parse(ctx, q, "listUnits")
	if err != nil {
		return err
	}
	service, none := filterID[domain.ServicePrefix](q, "service_id")
	if none {
		return a.sendPage(c, req, nil, false, page.Position{})
	}
	rows, err := store.Units(ctx, req.Reader(ctx, a.DB), store.UnitFilter{Active: filterBool(q, "active"), Service: service}, req)
	if err != nil {
		return err
	}
	rows, more := page.Cut(rows, req)
	var last page.Position
	if n := len(rows); n > 0 {
		last = position(req, rows[n-1].ID.UUID(), rows[n-1].CreatedAt, rows[n-1].UpdatedAt)
	}
	data, err := renderAll(rows, func(u domain.Unit) (api.Unit, error) { return view.Unit(u, mode(ctx)) })
	if err != nil {
		return err
	}
	return a.sendPage(c, req, data, more, last)
}

func (a *API) unit(ctx context.Context, id string) (domain.Unit, error) {
	return found(ctx, a.DB, id, domain.ErrUnitNotFound, store.Unit)
}
