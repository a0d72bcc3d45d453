package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

const (
	maxLookup      = 4096 // bytes of a look-up's body
	maxCredentials = 500  // of one call, which is within maxConsoleBody
	oauthKind      = "oauth"
)

// mountInternal registers the calls of other services, which proto/internal/identity.yaml states.
func (a *API) mountInternal(e *gin.Engine) error {
	e.POST("/internal/v1/credentials/lookup", a.Server.Internal(a.lookupCredential, "gateway"))
	e.POST("/internal/v1/credentials/ended", a.Server.Internal(a.endedCredentials, "bookings"))
	e.POST("/internal/v1/sessions/lookup", a.Server.Internal(a.lookupSession, "console"))
	e.PUT("/internal/v1/drafts/:key", a.Server.Internal(a.saveDraft, "console"))
	e.GET("/internal/v1/drafts/:key", a.Server.Internal(a.lookupDraft, "console"))
	e.GET("/internal/v1/tenants/:id", a.Server.Internal(a.lookupTenant, "bookings", "customers", "console"))
	e.PUT("/internal/v1/tenants/:id/test-clock", a.Server.Internal(a.setTestClock, "bookings"))
	e.GET("/internal/v1/browser-origins", a.Server.Internal(a.lookupOrigin, "gateway"))
	return a.mountConsole(e)
}

// lookupCredential answers what a credential stands for, and notes its use.
func (a *API) lookupCredential(c *gin.Context) error {
	var body internalapi.Lookup
	if err := json.NewDecoder(io.LimitReader(c.Request.Body, maxLookup)).Decode(&body); err != nil {
		return apperr.Field("hash", "Must be given in a JSON object.").WithCause(err)
	}
	hash, err := hashOf(body.Hash)
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

// endedCredentials answers which of the credentials have ended or were rotated.
func (a *API) endedCredentials(c *gin.Context) error {
	body, err := bodyOf[internalapi.CredentialList](c)
	if err != nil {
		return err
	}
	if len(body.Credentials) > maxCredentials {
		return apperr.Field("credentials", "Must be at most %d.", maxCredentials)
	}
	list := make([]domain.Credential, len(body.Credentials))
	for i, one := range body.Credentials {
		tenant, err := ids.Parse[ids.TenantPrefix](one.TenantID)
		if err != nil {
			return apperr.Field("credentials", "The id of a tenant is wrong: %q.", one.TenantID).WithCause(err)
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

// lookupSession answers who has signed in.
func (a *API) lookupSession(c *gin.Context) error {
	var body internalapi.SessionLookup
	if err := json.NewDecoder(io.LimitReader(c.Request.Body, maxLookup)).Decode(&body); err != nil {
		return apperr.Field("hash", "Must be given in a JSON object.").WithCause(err)
	}
	hash, err := hashOf(body.Hash)
	if err != nil {
		return err
	}
	rows, err := a.App.SessionOf(c.Request.Context(), hash, body.Watch != nil && *body.Watch)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Session(rows, a.App.Scopes, a.App.FormProof(rows[0].Operator)))
}

// hashOf reads a SHA-256.
func hashOf(text string) ([]byte, error) {
	hash, err := hex.DecodeString(text)
	if err != nil || len(hash) != sha256.Size {
		return nil, apperr.Field("hash", "Must be a SHA-256 in 64 hexadecimal digits.")
	}
	return hash, nil
}

// lookupOrigin answers whether an app has registered an origin.
func (a *API) lookupOrigin(c *gin.Context) error {
	registered, err := a.App.OriginRegistered(c.Request.Context(), c.Query("origin"))
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.Origin{Registered: registered})
}

// lookupTenant answers one tenant, whatever tenant the calling service works for.
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
