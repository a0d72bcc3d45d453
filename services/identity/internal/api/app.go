package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

func (a *API) listApps(c *gin.Context, _ asker) error {
	ctx := c.Request.Context()
	apps, err := store.Apps(ctx, a.DB.Read(ctx))
	if err != nil {
		return err
	}
	return rest.Object(c, view.Apps(apps))
}

func (a *API) createApp(c *gin.Context, by asker) error {
	body, err := httpx.Body[internalapi.AppRegistration](c)
	if err != nil {
		return err
	}
	in, err := registration(internalapi.AppPatch{
		Name: &body.Name, RedirectURIs: &body.RedirectURIs, Scopes: &body.Scopes, Published: body.Published,
		ReuseLeewaySeconds: body.ReuseLeewaySeconds, BrowserOrigins: body.BrowserOrigins,
	})
	if err != nil {
		return err
	}
	return a.sendOnce(c, by, caller.Live, func(ctx context.Context, tx pg.Tx) (any, error) {
		newApp, err := a.App.CreateAppIn(ctx, tx, by.origin(), by.Tenant, in)
		if err != nil {
			return nil, appFields(err)
		}
		return view.App(newApp), nil
	})
}

func (a *API) updateApp(c *gin.Context, by asker) error {
	own, err := a.ownApp(c, by)
	if err != nil {
		return err
	}
	body, err := httpx.Body[internalapi.AppPatch](c)
	if err != nil {
		return err
	}
	in, err := registration(body)
	if err != nil {
		return err
	}
	changed, _, err := a.App.UpdateApp(c.Request.Context(), by.origin(), own.ID, in)
	if err != nil {
		return appFields(err)
	}
	return rest.Object(c, view.App(changed))
}

func (a *API) deleteApp(c *gin.Context, by asker) error {
	own, err := a.ownApp(c, by)
	if err != nil {
		return err
	}
	if _, _, err := a.App.DeleteApp(c.Request.Context(), by.origin(), own.ID); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}

// ownApp returns the app of the path, which must belong to the tenant, because the use cases accept the app of any tenant.
func (a *API) ownApp(c *gin.Context, by asker) (domain.App, error) {
	id, err := domain.ParseAppID(c.Param("id"))
	if err != nil {
		return domain.App{}, err
	}
	return a.App.OwnApp(c.Request.Context(), by.Tenant, id)
}

func registration(body internalapi.AppPatch) (app.Registration, error) {
	in := app.Registration{
		Name: patch.FromPointer(body.Name), RedirectURIs: patch.FromPointer(body.RedirectURIs), Origins: patch.FromPointer(body.BrowserOrigins),
		Published: patch.FromPointer(body.Published), ReuseLeeway: patch.FromPointer(body.ReuseLeewaySeconds),
	}
	if body.Scopes != nil {
		scopes, err := scopeList(*body.Scopes)
		if err != nil {
			return app.Registration{}, err
		}
		in.Scopes = patch.Value(scopes)
	}
	return in, nil
}

// appFields renames the fields of an error to those of the body, because the use cases use the flags of the command line.
func appFields(err error) error {
	var wrong *apperr.Error
	if !errors.As(err, &wrong) || wrong.Code != "invalid_request" {
		return err
	}
	names := map[string]string{"redirect_uri": "redirect_uris", "browser_origin": "browser_origins", "reuse_leeway": "reuse_leeway_seconds"}
	fields := make([]apperr.FieldError, len(wrong.Fields))
	for i, f := range wrong.Fields {
		if name, ok := names[f.Field]; ok {
			f.Field = name
		}
		fields[i] = f
	}
	return apperr.Fields(fields)
}
