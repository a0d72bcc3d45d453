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
	return sendOne(c, u.Version, view.Unit(u, mode(ctx)))
}

func (a *API) listUnits(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	req, err := a.Pages.Parse(ctx, q, "listUnits")
	if err != nil {
		return err
	}
	service, none := filterID[domain.ServicePrefix](q, "service_id")
	if none {
		return sendNone(c)
	}
	rows, err := store.Units(ctx, req.Reader(ctx, a.DB), store.UnitFilter{Active: filterBool(q, "active"), Service: service}, req)
	if err != nil {
		return err
	}
	return sendPage(c, a.Pages, req, rows, func(u domain.Unit) page.Place {
		return page.Place{ID: u.ID.UUID(), Created: u.CreatedAt, Updated: u.UpdatedAt}
	}, func(u domain.Unit) api.Unit { return view.Unit(u, mode(ctx)) })
}

func (a *API) unit(ctx context.Context, id string) (domain.Unit, error) {
	return found(ctx, a.DB, id, domain.ErrUnitNotFound, store.Unit)
}
