package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/store"
)

// endpointGrants responds with a page of the grants that hold endpoints.
func (a *API) endpointGrants(c *gin.Context) error {
	list, err := a.Grants.List(c.Request.Context(), httpx.Query(c).String("after"))
	if err != nil {
		return err
	}
	out := internalapi.EndpointGrants{Data: make([]internalapi.EndpointGrant, len(list))}
	for i, g := range list {
		out.Data[i] = internalapi.EndpointGrant{TenantID: g.TenantID.String(), Livemode: g.Livemode, ID: g.Holder}
	}
	return rest.Object(c, out)
}

// endEndpointGrants disables the endpoints of grants that have ended.
func (a *API) endEndpointGrants(c *gin.Context) error {
	body, err := httpx.Body[internalapi.EndpointGrants](c)
	if err != nil {
		return err
	}
	grants := make([]store.EndpointGrant, len(body.Data))
	for i, g := range body.Data {
		tenant, err := ids.Parse[ids.TenantPrefix](g.TenantID)
		if err != nil {
			return apperr.Field("data", "Invalid tenant ID: %q.", g.TenantID).WithCause(err)
		}
		grants[i] = store.EndpointGrant{TenantID: tenant, Livemode: g.Livemode, Holder: g.ID}
	}
	n, err := a.Grants.End(c.Request.Context(), grants)
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.DisabledEndpoints{Disabled: n})
}
