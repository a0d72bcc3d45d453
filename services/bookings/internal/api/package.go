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

func (a *API) getPackage(c *gin.Context) error {
	ctx := c.Request.Context()
	p, err := a.packaged(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return sendOne(c, p.Version, view.Package(p, mode(ctx)))
}

func (a *API) listPackages(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	req, err := a.Pages.Parse(ctx, q, "listPackages")
	if err != nil {
		return err
	}
	service, none := filterID[domain.ServicePrefix](q, "service_id")
	if none {
		return sendNone(c)
	}
	rows, err := store.Packages(ctx, req.Reader(ctx, a.DB), store.PackageFilter{Active: filterBool(q, "active"), Service: service}, req)
	if err != nil {
		return err
	}
	return sendPage(c, a.Pages, req, rows, func(p domain.Package) page.Place {
		return page.Place{ID: p.ID.UUID(), Created: p.CreatedAt, Updated: p.UpdatedAt}
	}, func(p domain.Package) api.Package { return view.Package(p, mode(ctx)) })
}

func (a *API) packaged(ctx context.Context, id string) (domain.Package, error) {
	return found(ctx, a.DB, id, domain.ErrPackageNotFound, store.Package)
}
