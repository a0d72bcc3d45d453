package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const operatorKind = "operator" // kind of the callers that the console signs

// consoleCall handles a call of the console on behalf of an operator.
type consoleCall func(c *gin.Context, by asker) error

// consoleRoutes returns the calls of the console on behalf of an operator.
func (a *API) consoleRoutes() map[string]httpx.Route {
	routes := map[string]httpx.Route{}
	for id, h := range map[string]consoleCall{
		"listApiKeys": a.listKeys, "createApiKey": a.createKey, "rotateApiKey": a.rotateKey, "revokeApiKey": a.revokeKey,
		"listMembers": a.listMembers, "inviteMember": a.inviteMember, "changeMember": a.changeMember, "removeMember": a.removeMember,
		"listApps": a.listApps, "createApp": a.createApp, "updateApp": a.updateApp, "deleteApp": a.deleteApp,
		"listGrants": a.listGrants, "revokeGrant": a.revokeGrant,
		"listAudit":   a.listAudit, // for one object; all others need ReadAudit
		"verifyAudit": a.verifyAudit, "updateTenant": a.updateTenant, "setTenantLogo": a.setLogo,
		"listViews": a.listViews, "saveView": a.saveView, "deleteView": a.deleteView,
	} {
		routes[id] = httpx.Route{Allow: a.permit, Handle: func(c *gin.Context) error { return h(c, askerOf(c)) }}
	}
	return routes
}

// asker is the operator on whose behalf the console calls, a member of the caller's tenant.
type asker struct {
	domain.Membership
	caller.Caller
}

// origin returns the origin of the call for the audit log.
func (m asker) origin() domain.Origin {
	return domain.Origin{Actor: m.Credential, Source: "console:" + m.RequestID}
}

// tenantMode returns the tenant and the mode of the call.
func (m asker) tenantMode() store.TenantMode {
	return store.TenantMode{TenantID: m.Tenant, Livemode: m.Live()}
}

// permit rejects a caller unless it is an operator whose current role at the caller's tenant has the required permission.
func (a *API) permit(c *gin.Context) error {
	ctx := c.Request.Context()
	from := caller.FromContext(ctx)
	id, err := ids.Parse[domain.OperatorPrefix](from.Credential)
	if err != nil || from.Kind != operatorKind {
		return domain.ErrPermission.WithCause(err)
	}
	m, err := a.App.Permit(ctx, id, domain.Permission(httpx.Operation(c).Permission))
	if err != nil {
		return err
	}
	c.Set(askerKey, asker{m, from})
	return nil
}

// askerKey is the key of the result of permit in a gin.Context.
const askerKey = "identity.asker"

func askerOf(c *gin.Context) asker {
	by, _ := c.MustGet(askerKey).(asker)
	return by
}

// created responds with 201 and v.
func created(c *gin.Context, v any) error {
	body, err := contract.Encode(v)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusCreated, "", body)
}
