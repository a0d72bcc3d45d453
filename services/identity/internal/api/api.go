// Package api contains the HTTP handlers: two public operations of the contract, and the internal calls.
package api

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/api/oauth"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// API contains the dependencies of the handlers.
type API struct {
	DB          *pg.DB // app role
	App         *app.App
	Idempotency *idemstore.Store // its Box seals responses that contain a secret
	LastUse     *app.LastUse
	OAuth       *oauth.Server
	RateLimit   int // requests per minute of one credential, as GET /me returns it if the tenant has no own limit
	Server      *httpx.Server
	Now         func() time.Time
}

// Mount registers the contract's operations and the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	if err := a.mountInternal(e); err != nil {
		return err
	}
	a.OAuth.Mount(e, a.Server.Internal)
	return a.Server.Mount(e, map[string]httpx.Route{
		"getTenant": {Handle: a.getTenant},
		"getMe":     {Handle: a.getMe},
	})
}

func (a *API) getTenant(c *gin.Context) error {
	ctx := c.Request.Context()
	t, err := store.ShownTenant(ctx, a.DB.Read(ctx))
	if err != nil {
		return credentialGone(err, domain.ErrTenantNotFound)
	}
	return rest.Object(c, view.Tenant(t.Tenant, caller.FromContext(ctx).Mode, t.GatewayProvider, t.GatewayEvents))
}

func (a *API) getMe(c *gin.Context) error {
	ctx := c.Request.Context()
	credential := caller.FromContext(ctx).Credential
	if id, err := domain.ParseGrantID(credential); err == nil {
		g, err := store.Grant(ctx, a.DB.Read(ctx), id)
		if err != nil {
			return credentialGone(err, domain.ErrGrantNotFound)
		}
		limit, err := a.rateLimit(ctx)
		if err != nil {
			return err
		}
		return rest.Object(c, view.MeOfGrant(g, caller.FromContext(ctx).Scopes, limit))
	}
	id, err := domain.ParseKeyID(credential)
	if err != nil {
		return domain.ErrCredentialGone.WithCause(err)
	}
	k, err := store.Key(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return credentialGone(err, domain.ErrKeyNotFound)
	}
	limit, err := a.rateLimit(ctx)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Me(k, limit))
}

// rateLimit returns the requests per minute that the gateway allows each credential of the caller's tenant.
func (a *API) rateLimit(ctx context.Context) (int, error) {
	t, err := store.Tenant(ctx, a.DB.Read(ctx))
	if err != nil {
		return 0, credentialGone(err, domain.ErrTenantNotFound)
	}
	if own := t.CredentialRequestsPerMinute; own != nil {
		return *own, nil
	}
	return a.RateLimit, nil
}

// credentialGone replaces the error missing, because without its own tenant or key the caller's credential is not valid.
func credentialGone(err, missing error) error {
	if errors.Is(err, missing) {
		return domain.ErrCredentialGone.WithCause(err)
	}
	return err
}
