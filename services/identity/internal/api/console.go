package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

// permitted returns the role of the operator for whom the console asks, and who acts for the audit log. It is ErrNotPermitted when the
// operator is no member of the caller's tenant now, may not sign in, or has a role without the permission.
func (a *API) permitted(ctx context.Context, permission domain.Permission) (domain.Role, domain.Origin, error) {
	from := caller.FromContext(ctx)
	by := domain.Origin{Actor: from.Credential, Source: "console:" + from.RequestID}
	id, err := ids.Parse[domain.OperatorPrefix](from.Credential)
	if err != nil {
		return "", by, domain.ErrNotPermitted.WithCause(err)
	}
	role, err := a.App.RoleOf(ctx, id)
	if errors.Is(err, domain.ErrOperatorNotFound) || err == nil && !role.May(permission) {
		return "", by, domain.ErrNotPermitted
	}
	return role, by, err
}

// listKeys answers the API keys of the caller's tenant and mode.
func (a *API) listKeys(c *gin.Context) error {
	ctx := c.Request.Context()
	if _, _, err := a.permitted(ctx, domain.ManageKeys); err != nil {
		return err
	}
	from := caller.FromContext(ctx)
	keys, err := a.App.Keys(ctx, from.Tenant)
	if err != nil {
		return err
	}
	out := internalapi.APIKeyList{Data: []internalapi.APIKey{}}
	for _, k := range keys {
		if k.Livemode == from.Live() {
			out.Data = append(out.Data, view.InternalKey(k))
		}
	}
	return rest.Object(c, out)
}

// createKey makes an API key of the caller's tenant and mode, with scopes that the operator's role has.
func (a *API) createKey(c *gin.Context) error {
	ctx := c.Request.Context()
	role, by, err := a.permitted(ctx, domain.ManageKeys)
	if err != nil {
		return err
	}
	var body internalapi.APIKeyCreate
	if err := json.NewDecoder(io.LimitReader(c.Request.Body, maxLookup)).Decode(&body); err != nil {
		return apperr.Field("name", "Must be given in a JSON object.").WithCause(err)
	}
	own := role.Scopes(a.App.Scopes)
	for _, scope := range body.Scopes {
		if !slices.Contains(own, scope) {
			return apperr.Field("scopes", "%q is no scope that your role has.", scope)
		}
	}
	if len(body.Scopes) == 0 {
		return apperr.Field("scopes", "Must name at least one scope.")
	}
	from := caller.FromContext(ctx)
	k, secret, err := a.App.CreateKey(ctx, by, app.NewKey{Tenant: from.Tenant, Mode: string(from.Mode), Name: body.Name, Scopes: strings.Join(body.Scopes, ",")})
	if err != nil {
		return err
	}
	out, err := contract.Encode(internalapi.APIKeyWithSecret{APIKey: view.InternalKey(k), Secret: secret})
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusCreated, "", out)
}

// revokeKey ends an API key of the caller's tenant and mode.
func (a *API) revokeKey(c *gin.Context) error {
	ctx := c.Request.Context()
	_, by, err := a.permitted(ctx, domain.ManageKeys)
	if err != nil {
		return err
	}
	id, err := domain.ParseKeyID(c.Param("id"))
	if err != nil {
		return domain.ErrKeyNotFound
	}
	k, err := a.App.RevokeKeyAt(ctx, by, id)
	if err != nil {
		return err
	}
	return rest.Object(c, view.InternalKey(k))
}
