package api

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// csvUsage is the number of rows that are read at a time for CSV.
const csvUsage = 1000

func (a *PlatformAPI) listTenantUsage(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	id, livemode, err := a.usageOf(c)
	if err != nil {
		return err
	}
	from, to, err := domain.ParseUsageDays(q.String("from"), q.String("to"))
	if err != nil {
		return err
	}
	list, through, err := a.App.TenantUsage(ctx, id, from, to, livemode)
	if err != nil {
		return err
	}
	if httpx.PrefersCSV(c) {
		return page.CSV(c, func(context.Context) ([]platformapi.Usage, error) {
			rows := view.Usages(list)
			list = nil
			return rows, nil
		})
	}
	return rest.Object(c, view.TenantUsage(list, through))
}

// usageOf returns the tenant of the path and the mode of the query; nil: both. Usage outlives its tenant.
func (a *PlatformAPI) usageOf(c *gin.Context) (id ids.Tenant, livemode *bool, err error) {
	if id, err = tenantID(c.Param("id")); err != nil {
		return id, nil, err
	}
	if mode := httpx.Query(c).String("mode"); mode != "" {
		livemode = new(mode == string(caller.Live))
	}
	return id, livemode, a.App.TenantKnown(c.Request.Context(), id)
}

// usedByTenant returns the 404 for a tenant of the path that does not exist and never did. Usage outlives its tenant.
func (a *PlatformAPI) usedByTenant(ctx context.Context, text string) error {
	id, err := tenantID(text)
	if err != nil {
		return err
	}
	return a.App.TenantKnown(ctx, id)
}

func (a *PlatformAPI) listUsage(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	day, err := domain.ParseUsageDay("day", q.String("day"))
	if err != nil {
		return err
	}
	if httpx.PrefersCSV(c) {
		return a.usageCSV(c, day)
	}
	after, err := usageRow(q.String("cursor"))
	if err != nil {
		return err
	}
	list, more, err := a.App.UsageOfDay(ctx, day, after, q.Int("limit", pageSize))
	if err != nil {
		return err
	}
	next := ""
	if more {
		next = usageCursor(list[len(list)-1])
	}
	return rest.Object(c, view.UsagePage(list, next))
}

func (a *PlatformAPI) listBackgroundWork(c *gin.Context) error {
	ctx := c.Request.Context()
	t, err := a.tenant(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	work, unavailable := a.Metering.BackgroundWork(ctx, t.ID)
	return rest.Object(c, view.BackgroundWork(slices.Sorted(maps.Keys(work)), work, unavailable))
}

// usageCSV responds with all rows of a day.
func (a *PlatformAPI) usageCSV(c *gin.Context, day time.Time) error {
	for _, name := range []string{"limit", "cursor"} {
		if httpx.Query(c).Has(name) {
			return apperr.Field(name, "Not allowed with text/csv, which returns all rows of the list.")
		}
	}
	after, more := store.UsageRow{}, true
	return page.CSV(c, func(ctx context.Context) ([]platformapi.Usage, error) {
		if !more {
			return nil, nil
		}
		list, further, err := a.App.UsageOfDay(ctx, day, after, csvUsage)
		if err != nil {
			return nil, err
		}
		if more = further; len(list) > 0 {
			last := list[len(list)-1]
			after = store.UsageRow{TenantID: last.TenantID, Livemode: last.Livemode}
		}
		return view.Usages(list), nil
	})
}

// usageCursor returns the cursor of the page after a row: the tenant and the mode.
func usageCursor(u domain.Usage) string {
	return u.TenantID.String() + "." + string(caller.ModeOf(u.Livemode))
}

// usageRow returns the row of a cursor. "" is the place before all rows.
func usageRow(cursor string) (store.UsageRow, error) {
	if cursor == "" {
		return store.UsageRow{}, nil
	}
	tenant, mode, _ := strings.Cut(cursor, ".")
	id, err := ids.Parse[ids.TenantPrefix](tenant)
	if err != nil || mode != string(caller.Live) && mode != string(caller.Test) {
		return store.UsageRow{}, domain.ErrCursor
	}
	return store.UsageRow{TenantID: id, Livemode: mode == string(caller.Live)}, nil
}
