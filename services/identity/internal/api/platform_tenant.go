package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// pageSize is the number of rows on a page of a list without a limit.
const pageSize = 25

// shownTenant is the response about a tenant.
func shownTenant(t domain.Tenant, err error) (rest.Response, error) {
	return rest.Response{ID: t.ID.String(), Version: t.Version, Body: view.PlatformTenant(t)}, err
}

func (a *PlatformAPI) createTenant(c *gin.Context) error {
	body, err := httpx.Body[platformapi.TenantCreate](c)
	if err != nil {
		return err
	}
	in := domain.TenantPatch{
		Name: patch.Value(body.Name), Timezone: patch.Value(body.Timezone), Currency: patch.Value(body.Currency), Country: patch.FromNullable(body.Country),
		ExternalID: patch.FromNullable(body.ExternalID), Metadata: patch.FromNullable(body.Metadata),
	}
	return a.write(c, http.StatusCreated, ids.Tenant{}, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		return shownTenant(a.App.CreateTenantIn(ctx, tx, platformOrigin(ctx), body.Slug, in))
	})
}

func (a *PlatformAPI) listTenants(c *gin.Context) error {
	q := httpx.Query(c)
	f := store.TenantFilter{
		Status: domain.TenantStatus(q.String("status")), Slug: q.String("slug"), ExternalID: q.String("external_id"), Search: q.String("q"),
		Updated: q.String("sort") == string(platformapi.TenantsByUpdate),
	}
	if after, ok := q.Time("updated_after"); ok {
		f.UpdatedAfter = &after
	}
	var err error
	if f.After, err = tenantPosition(q.String("cursor"), f.Updated); err != nil {
		return err
	}
	list, more, err := a.App.TenantPage(c.Request.Context(), f, q.Int("limit", pageSize))
	if err != nil {
		return err
	}
	next := ""
	if more {
		next = tenantCursor(list[len(list)-1], f.Updated)
	}
	return rest.Object(c, view.PlatformTenants(list, next))
}

// tenantCursor returns the cursor of the page after a tenant: its id, in the order of the changes with the time of its last change.
func tenantCursor(t domain.Tenant, updated bool) string {
	if !updated {
		return t.ID.String()
	}
	return strconv.FormatInt(t.UpdatedAt.UnixMicro(), 10) + "." + t.ID.String()
}

// tenantPosition returns the place of a cursor. "" is the place before all tenants.
func tenantPosition(cursor string, updated bool) (at store.TenantPosition, err error) {
	if cursor == "" {
		return at, nil
	}
	id := cursor
	if updated {
		var micro int64
		text, rest, _ := strings.Cut(cursor, ".")
		if micro, err = strconv.ParseInt(text, 10, 64); err != nil || micro < 0 || micro > maxCursorTime {
			return at, domain.ErrCursor
		}
		at.At, id = time.UnixMicro(micro).UTC(), rest
	}
	if at.ID, err = ids.Parse[ids.TenantPrefix](id); err != nil {
		return at, domain.ErrCursor
	}
	return at, nil
}

// maxCursorTime is the latest time of a cursor, in the year 2200, in microseconds.
const maxCursorTime = 7_258_118_400_000_000

func (a *PlatformAPI) getTenant(c *gin.Context) error {
	t, err := a.tenant(c.Request.Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, t.Version, view.PlatformTenant(t))
}

func (a *PlatformAPI) updateTenant(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[platformapi.TenantUpdate](c)
	if err != nil {
		return err
	}
	in := domain.TenantPatch{
		Name: patch.FromPointer(body.Name), Timezone: patch.FromPointer(body.Timezone), Currency: patch.FromPointer(body.Currency), Country: patch.FromNullable(body.Country),
		ExternalID: patch.FromNullable(body.ExternalID), Metadata: patch.FromNullable(body.Metadata),
	}
	return a.write(c, http.StatusOK, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		return shownTenant(a.App.UpdateTenantIn(ctx, tx, platformOrigin(ctx), id, in, httpx.IfMatch(c)))
	})
}

// getErasure also responds for a tenant that exists no longer.
func (a *PlatformAPI) getErasure(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return domain.ErrErasureNotFound
	}
	e, err := a.App.ErasureOf(c.Request.Context(), id)
	if err != nil {
		return err
	}
	return rest.Object(c, view.PlatformErasure(e, a.ErasedServices, a.Now()))
}

// act returns the handler of an action on a tenant.
func (a *PlatformAPI) act(action domain.TenantAction) httpx.Handler {
	return func(c *gin.Context) error {
		id, err := tenantID(c.Param("id"))
		if err != nil {
			return err
		}
		body, err := httpx.Body[platformapi.StatusChange](c)
		if err != nil {
			return err
		}
		return a.write(c, http.StatusOK, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
			return shownTenant(a.App.ActOnTenantIn(ctx, tx, platformOrigin(ctx), id, app.TenantAct{Action: action, Reason: body.Reason}, httpx.IfMatch(c)))
		})
	}
}

func (a *PlatformAPI) getLimits(c *gin.Context) error {
	t, err := a.tenant(c.Request.Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, t.Version, view.PlatformLimits(t.Limits))
}

// setLimits replaces all limits.
func (a *PlatformAPI) setLimits(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[platformapi.LimitsSet](c)
	if err != nil {
		return err
	}
	in := domain.LimitsPatch{
		Reset: true, RequestsPerMinute: patch.FromNullable(body.RequestsPerMinute),
		CredentialRequestsPerMinute: patch.FromNullable(body.CredentialRequestsPerMinute), Caps: map[string]patch.Field[int]{},
	}
	for name, most := range body.Caps {
		in.Caps[name] = patch.Value(most)
	}
	return a.write(c, http.StatusOK, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		t, err := a.App.SetLimitsIn(ctx, tx, platformOrigin(ctx), id, in, httpx.IfMatch(c))
		return rest.Response{ID: t.ID.String(), Version: t.Version, Body: view.PlatformLimits(t.Limits)}, err
	})
}
