package api

import (
	"encoding/hex"
	"maps"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

const oauthKind = "oauth"

// mountInternal registers the calls of other services, which proto/internal/identity.yaml declares.
func (a *API) mountInternal(e *gin.Engine) error {
	routes := a.consoleRoutes()
	maps.Copy(routes, map[string]httpx.Route{
		"lookupCredential": {Handle: a.lookupCredential},
		"endedCredentials": {Handle: a.endedCredentials},
		"lookupSession":    {Handle: a.lookupSession},
		"saveDraft":        {Handle: a.saveDraft},
		"lookupDraft":      {Handle: a.lookupDraft},
		"lookupTenant":     {Handle: a.lookupTenant},
		"setTenantClock":   {Handle: a.setTestClock},
		"lookupOrigin":     {Handle: a.lookupOrigin},
	})
	return a.Server.MountInternal(e, proto.InternalIdentity, routes)
}

// lookupCredential returns the principal of a credential and records its use.
func (a *API) lookupCredential(c *gin.Context) error {
	body, err := httpx.Body[internalapi.Lookup](c)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(body.Hash)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	if body.Kind != nil && *body.Kind == oauthKind {
		p, err := store.AccessToken(ctx, a.DB.Read(ctx), hash)
		if err != nil {
			return err
		}
		return rest.Object(c, view.TokenPrincipal(p))
	}
	p, err := store.Principal(ctx, a.DB.Read(ctx), hash)
	if err != nil {
		return err
	}
	if p.Revoked = p.Ended(a.Now()); !p.Revoked {
		a.LastUse.Note(p.KeyID, a.Now())
	}
	return rest.Object(c, view.Principal(p))
}

// endedCredentials returns the credentials that have ended or were rotated.
func (a *API) endedCredentials(c *gin.Context) error {
	body, err := httpx.Body[internalapi.CredentialList](c)
	if err != nil {
		return err
	}
	list := make([]domain.Credential, len(body.Credentials))
	for i, one := range body.Credentials {
		tenant, err := ids.Parse[ids.TenantPrefix](one.TenantID)
		if err != nil {
			return apperr.Field("credentials", "Invalid tenant ID: %q.", one.TenantID).WithCause(err)
		}
		list[i] = domain.CredentialOf(tenant, one.ID)
	}
	ctx := c.Request.Context()
	states, err := store.EndedCredentials(ctx, a.DB.Read(ctx), list, a.Now())
	if err != nil {
		return err
	}
	return rest.Object(c, view.EndedCredentials(body.Credentials, states))
}

// lookupSession returns the signed-in operator.
func (a *API) lookupSession(c *gin.Context) error {
	body, err := httpx.Body[internalapi.SessionLookup](c)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(body.Hash)
	if err != nil {
		return err
	}
	rows, err := a.App.SessionOf(c.Request.Context(), hash, body.Watch != nil && *body.Watch)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Session(rows, a.App.Scopes, a.App.FormProof(rows[0].Operator)))
}

// lookupOrigin returns whether an app has registered an origin.
func (a *API) lookupOrigin(c *gin.Context) error {
	registered, err := a.App.OriginRegistered(c.Request.Context(), httpx.Query(c).String("origin"))
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.Origin{Registered: registered})
}

// lookupTenant returns one tenant, regardless of the tenant that the calling service works for.
func (a *API) lookupTenant(c *gin.Context) error {
	id, err := ids.Parse[ids.TenantPrefix](c.Param("id"))
	if err != nil {
		return domain.ErrTenantNotFound
	}
	from := caller.FromContext(c.Request.Context())
	from.Tenant = id
	ctx := caller.With(c.Request.Context(), from)
	t, err := store.Tenant(ctx, a.DB.Read(ctx))
	if err != nil {
		return err
	}
	return rest.Object(c, view.InternalTenant(t))
}
