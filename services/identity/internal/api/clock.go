package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

// setTestClock moves the clock of the caller's own tenant, in test mode only.
func (a *API) setTestClock(c *gin.Context) error {
	ctx := c.Request.Context()
	from := caller.FromContext(ctx)
	id, err := ids.Parse[ids.TenantPrefix](c.Param("id"))
	switch {
	case err != nil || id != from.Tenant:
		return domain.ErrTenantNotFound
	case from.Mode != caller.Test:
		return apperr.ErrMode
	}
	body, err := httpx.Body[internalapi.TestClockSet](c)
	if err != nil {
		return err
	}
	by := domain.Origin{Actor: from.Credential, Source: "bookings:" + from.RequestID}
	t, _, err := a.App.SetClock(ctx, by, id, body.Now)
	if err != nil {
		return err
	}
	return rest.Object(c, view.InternalTenant(t))
}
