package api

import (
	"context"
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
		"lookupCredential":  {Handle: a.lookupCredential},
		"lookupCredentials": {Handle: a.lookupCredentials},
		"endedCredentials":  {Handle: a.endedCredentials},
		"lookupSession":     {Handle: a.lookupSession},
		"saveDraft":         {Handle: a.saveDraft},
		"lookupDraft":       {Handle: a.lookupDraft},
		"lookupTenant":      {Handle: a.lookupTenant},
		"lookupTenantLogo":  {Handle: a.lookupLogo},
		"setTenantClock":    {Handle: a.setTestClock},
		"lookupOrigin":      {Handle: a.lookupOrigin},
	})
	return a.Server.MountInternal(e, proto.InternalIdentity, routes)
}

// lookupCredential returns the principal of a credential and records its use.
func (a *API) lookupCredential(c *gin.Context) error {
	body, err := httpx.Body[internalapi.Lookup](c)
	if err != nil {
		return err
	}
	kind := ""
	if body.Kind != nil {
		kind = *body.Kind
	}
	found, err := a.principals(c.Request.Context(), kind, []string{body.Hash})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return domain.ErrCredentialNotFound
	}
	return rest.Object(c, found[0].Principal)
}

// lookupCredentials returns the principals of credentials and records their use.
func (a *API) lookupCredentials(c *gin.Context) error {
	body, err := httpx.Body[internalapi.LookupBatch](c)
	if err != nil {
		return err
	}
	found, err := a.principals(c.Request.Context(), body.Kind, body.Hashes)
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.FoundCredentials{Data: found})
}

// principals returns the principals of the access tokens or API keys that exist, in any order, and records the use of keys.
func (a *API) principals(ctx context.Context, kind string, encoded []string) ([]internalapi.FoundCredential, error) {
	hashes := make([][]byte, len(encoded))
	for i, h := range encoded {
		var err error
		if hashes[i], err = hex.DecodeString(h); err != nil {
			return nil, err
		}
	}
	if kind == oauthKind {
		tokens, err := store.AccessTokens(ctx, a.DB.Read(ctx), hashes)
		found := make([]internalapi.FoundCredential, len(tokens))
		for i, t := range tokens {
			found[i] = internalapi.FoundCredential{Hash: hex.EncodeToString(t.Hash), Principal: view.TokenPrincipal(t.TokenPrincipal)}
		}
		return found, err
	}
	keys, err := store.Principals(ctx, a.DB.Read(ctx), hashes)
	found, now := make([]internalapi.FoundCredential, len(keys)), a.Now()
	for i, k := range keys {
		if !k.Ended(now) {
			a.LastUse.Note(k.KeyID, now)
		} else if k.Replaced {
			k.Revoked = true
		}
		found[i] = internalapi.FoundCredential{Hash: hex.EncodeToString(k.Hash), Principal: view.Principal(k.Principal)}
	}
	return found, err
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
