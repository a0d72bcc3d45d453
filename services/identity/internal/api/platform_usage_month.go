package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

func (a *PlatformAPI) listTenantUsageMonths(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	id, livemode, err := a.usageOf(c)
	if err != nil {
		return err
	}
	from, to, err := domain.ParseUsageMonths(q.String("from"), q.String("to"))
	if err != nil {
		return err
	}
	list, through, err := a.App.TenantUsageMonths(ctx, id, from, to, livemode)
	if err != nil {
		return err
	}
	out := view.TenantUsageMonths(list, through)
	if httpx.PrefersCSV(c) {
		return page.CSV(c, func(context.Context) ([]platformapi.UsageMonth, error) {
			rows := out.Data
			out.Data = nil
			return rows, nil
		})
	}
	return rest.Object(c, out)
}

func (a *PlatformAPI) listUsageMonths(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	month, err := domain.ParseUsageMonth("month", q.String("month"))
	if err != nil {
		return err
	}
	csv := httpx.PrefersCSV(c)
	for _, name := range []string{"limit", "cursor"} {
		if csv && q.Has(name) {
			return apperr.Field(name, "Not allowed with text/csv, which returns all rows of the list.")
		}
	}
	after, err := usageRow(q.String("cursor"))
	if err != nil {
		return err
	}
	more := true
	next := func(ctx context.Context, limit int) ([]platformapi.UsageMonth, error) {
		list, further, through, err := a.App.UsageOfMonth(ctx, month, after, limit)
		if err != nil {
			return nil, err
		}
		if more = further; len(list) > 0 {
			last := list[len(list)-1]
			after = store.UsageRow{TenantID: last.TenantID, Livemode: last.Livemode}
		}
		return view.UsageMonths(list, through), nil
	}
	if csv {
		return page.CSV(c, func(ctx context.Context) ([]platformapi.UsageMonth, error) {
			if !more {
				return nil, nil
			}
			return next(ctx, csvUsage)
		})
	}
	rows, err := next(ctx, q.Int("limit", pageSize))
	if err != nil {
		return err
	}
	cursor := ""
	if more {
		cursor = usageCursor(domain.Usage{TenantID: after.TenantID, Livemode: after.Livemode})
	}
	return rest.Object(c, view.UsageMonthPage(rows, cursor))
}
