// Package api is identity's HTTP door: two public operations of the contract, and the internal calls.
package api

import (
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// API answers identity's requests.
type API struct {
	DB        *pg.DB // app role
	App       *app.App
	LastUse   *app.LastUse
	RateLimit int // requests a minute of one credential, as GET /me tells it
	Server    *httpx.Server
	Now       func() time.Time
}

// Mount registers the contract's operations and the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	a.mountInternal(e)
	return a.Server.Mount(e, map[string]httpx.Route{
		"getTenant": {Handle: a.getTenant},
		"getMe":     {Handle: a.getMe},
	})
}

func (a *API) getTenant(c *gin.Context) error {
	ctx := c.Request.Context()
	who := caller.FromContext(ctx)
	t, err := store.Tenant(ctx, a.DB.Read(ctx), who.Tenant)
	if err != nil {
		return gone(err, domain.ErrTenantNotFound)
	}
	return send(c, view.Tenant(t, who.Mode))
}

func (a *API) getMe(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := domain.ParseKeyID(caller.FromContext(ctx).Credential)
	if err != nil {
		return domain.ErrCredentialGone.WithCause(err)
	}
	k, err := store.Key(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return gone(err, domain.ErrKeyNotFound)
	}
	return send(c, view.Me(k, a.RateLimit))
}
