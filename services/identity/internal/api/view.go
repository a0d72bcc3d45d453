package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

func (a *API) listViews(c *gin.Context, by asker) error {
	ctx := c.Request.Context()
	views, err := store.Views(ctx, a.DB.Read(ctx), by.OperatorID, httpx.Query(c).String("list"))
	if err != nil {
		return err
	}
	return rest.Object(c, view.Views(views))
}

func (a *API) saveView(c *gin.Context, by asker) error {
	body, err := httpx.Body[internalapi.NewView](c)
	if err != nil {
		return err
	}
	v, err := a.App.SaveView(c.Request.Context(), by.Tenant, by.OperatorID, domain.SavedView{List: body.List, Name: body.Name, Query: body.Query})
	if err != nil {
		return err
	}
	return created(c, view.View(v))
}

func (a *API) deleteView(c *gin.Context, by asker) error {
	id, err := domain.ParseViewID(c.Param("id"))
	if err != nil {
		return err
	}
	if err := a.App.DeleteView(c.Request.Context(), by.Tenant, by.OperatorID, id); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}
