package api

import (
	"encoding/base64"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/quota"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// logos limits how many logos a process decodes at the same time, because one needs up to 60 MB.
var logos = quota.NewSlots(quota.Limits{Work: "logos", All: 2, PerTenant: 1, Waiting: 2, Wait: 5 * time.Second})

// setLogo sets or removes the logo of the caller's tenant.
func (a *API) setLogo(c *gin.Context, by asker) error {
	body, err := httpx.Body[internalapi.NewTenantLogo](c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	release, err := logos.Acquire(ctx, by.Tenant)
	if err != nil {
		return err
	}
	defer release()
	var logo domain.Logo
	if body.Logo != nil {
		if logo, err = fromLogo(*body.Logo); err != nil {
			return err
		}
	}
	t, _, err := a.App.SetLogo(ctx, by.origin(), by.Tenant, logo)
	if err != nil {
		return err
	}
	return rest.Object(c, view.InternalTenant(t))
}

func fromLogo(encoded string) (domain.Logo, error) {
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return domain.Logo{}, apperr.Field("logo", "Must be Base64.").WithCause(err)
	}
	return domain.ParseLogo(content)
}

// lookupLogo returns the logo of the caller's own tenant.
func (a *API) lookupLogo(c *gin.Context) error {
	ctx := c.Request.Context()
	if c.Param("id") != caller.FromContext(ctx).Tenant.String() {
		return domain.ErrTenantNotFound
	}
	logo, err := store.Logo(ctx, a.DB.Read(ctx))
	if err != nil {
		return err
	}
	return rest.Object(c, view.TenantLogo(logo))
}
