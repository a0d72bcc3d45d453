package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

// verifyApp returns the handler that verifies an app, or ends its verification.
func (a *PlatformAPI) verifyApp(verified bool) httpx.Handler {
	return func(c *gin.Context) error {
		id, err := domain.ParseAppID(c.Param("id"))
		if err != nil {
			return err
		}
		found, err := a.App.AppByID(c.Request.Context(), id)
		if err != nil {
			return err
		}
		return a.write(c, http.StatusOK, found.TenantID, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
			changed, err := a.App.VerifyAppIn(ctx, tx, platformOrigin(ctx), id, verified)
			if errors.Is(err, domain.ErrSelfRegistered) {
				err = domain.ErrAppNotFound
			}
			return rest.Response{ID: id.String(), Body: view.PlatformApp(changed)}, err
		})
	}
}

// appExists returns the 404 for an app of the path that does not exist.
func (a *PlatformAPI) appExists(ctx context.Context, text string) error {
	id, err := domain.ParseAppID(text)
	if err == nil {
		_, err = a.App.AppByID(ctx, id)
	}
	return err
}
