package api

import (
	"slices"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func (a *PlatformAPI) getTenantUsageToday(c *gin.Context) error {
	ctx := c.Request.Context()
	t, err := a.tenant(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	day, rows, err := a.Metering.UsageToday(ctx, t)
	if err != nil {
		return err
	}
	if mode := httpx.Query(c).String("mode"); mode != "" {
		rows = slices.DeleteFunc(rows, func(u domain.Usage) bool { return string(caller.ModeOf(u.Livemode)) != mode })
	}
	return rest.Object(c, view.UsageToday(day, rows))
}
