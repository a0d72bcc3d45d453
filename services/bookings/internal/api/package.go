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
		return a.sendPage(c, req, nil, false, page.Position{})
	}
	rows, err := store.Packages(ctx, req.Reader(ctx, a.DB), store.PackageFilter{Active: filterBool(q, "active"), Service: service}, req)
	if err != nil {
		return err
	}
	rows, more := page.Cut(rows, req)
	var last page.Position
	if n := len(rows); n > 0 {
		last = position(req, rows[n-1].ID.UUID(), rows[n-1].CreatedAt, rows[n-1].UpdatedAt)
	}
	data, err := renderAll(rows, func(p domain.Package) (api.Package, error) { return view.Package(p, mode(ctx)), nil })
	if err != nil {
		return err
	}
	return a.sendPage(c, req, data, more, last)
}

func (a *API) packaged(ctx context.Context, id string) (domain.Package, error) {
	return found(ctx, a.DB, id, domain.ErrPackageNotFound, store.Package)
}
