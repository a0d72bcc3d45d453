package api

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

const maxKeys = 1000 // maximum number of keys in a list

func (a *API) listKeys(c *gin.Context, _ asker) error {
	ctx := c.Request.Context()
	keys, err := store.Keys(ctx, a.DB.Read(ctx), maxKeys)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Keys(keys, a.Now()))
}

func (a *API) createKey(c *gin.Context, by asker) error {
	body, err := httpx.Body[internalapi.NewKey](c)
	if err != nil {
		return err
	}
	scopes, err := scopeList(body.Scopes)
	if err != nil {
		return err
	}
	in := app.NewKey{Tenant: by.Tenant, Mode: string(by.Mode), Name: body.Name, Scopes: scopes, ExpiresAt: body.ExpiresAt}
	return a.sendOnce(c, by, by.Mode, func(ctx context.Context, tx pg.Tx) (any, error) {
		k, secret, err := a.App.CreateKeyIn(ctx, tx, by.origin(), in)
		return view.Key(k, secret, a.Now()), err
	})
}

func (a *API) rotateKey(c *gin.Context, by asker) error {
	id, err := domain.ParseKeyID(c.Param("id"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[internalapi.KeyRotation](c)
	if err != nil {
		return err
	}
	r := app.Rotation{Overlap: time.Duration(body.OverlapSeconds) * time.Second}
	res, err := a.once(c, by, by.Mode, func(ctx context.Context, tx pg.Tx) (any, error) {
		k, secret, err := a.App.RotateKeyIn(ctx, tx, by.origin(), id, r)
		return view.Key(k, secret, a.Now()), err
	})
	if err != nil {
		return err
	}
	if err := a.App.PublishInvalidations(c.Request.Context(), by.Tenant); err != nil { // RetryPublish retries later
		obs.Add(c.Request.Context(), slog.String("error", err.Error()))
	}
	return httpx.Send(c, res)
}

func (a *API) revokeKey(c *gin.Context, by asker) error {
	id, err := domain.ParseKeyID(c.Param("id"))
	if err != nil {
		return err
	}
	k, _, err := a.App.RevokeKeyAt(c.Request.Context(), by.origin(), by.tenantMode(), id)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Key(k, "", a.Now()))
}

// scopeList joins scopes in the format of the use cases. The list must not contain the word for all scopes.
func scopeList(scopes []string) (string, error) {
	if slices.ContainsFunc(scopes, func(s string) bool { return s == "all" || strings.Contains(s, ",") }) {
		return "", apperr.Field("scopes", "Must be a list of scopes.")
	}
	return strings.Join(scopes, ","), nil
}
