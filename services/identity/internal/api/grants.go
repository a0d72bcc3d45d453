package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

// listGrants returns the grants of apps at the caller's tenant, in both modes.
func (a *API) listGrants(c *gin.Context, by asker) error {
	ctx := c.Request.Context()
	var operator *domain.OperatorID
	if text := httpx.Query(c).String("operator_id"); text != "" {
		id, err := ids.Parse[domain.OperatorPrefix](text)
		if err != nil {
			return apperr.Field("operator_id", "Must be an operator ID that starts with op_.").WithCause(err)
		}
		operator = &id
	}
	grants, err := a.App.Grants(ctx, by.Tenant, operator)
	if err != nil {
		return err
	}
	out := internalapi.GrantList{Data: make([]internalapi.Grant, len(grants))}
	for i, g := range grants {
		out.Data[i] = view.InternalGrant(g)
	}
	return rest.Object(c, out)
}

// revokeGrant ends a grant of the caller's tenant on behalf of the requesting operator.
func (a *API) revokeGrant(c *gin.Context, by asker) error {
	id, err := domain.ParseGrantID(c.Param("id"))
	if err != nil {
		return domain.ErrGrantNotFound
	}
	if err := a.App.RevokeGrantAt(c.Request.Context(), by.origin(), by.Tenant, id); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}
