// Package api is identity's HTTP door: two public operations of the contract, and the internal calls.
package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
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
	Verifier  *caller.Verifier
	RateLimit int // requests a minute of one credential, as GET /me tells it
	Now       func() time.Time
}

// Handler mounts all routes; it fails when the contract and the routes differ.
func (a *API) Handler(c *contract.Contract) (http.Handler, error) {
	e := httpx.NewEngine()
	s := &httpx.Server{Service: "identity", Contract: c, Verifier: a.Verifier, Now: a.Now}
	err := s.Mount(e, map[string]httpx.Route{
		"getTenant": {Handle: a.getTenant},
		"getMe":     {Handle: a.getMe},
	})
	if err != nil {
		return nil, err
	}
	a.mountInternal(e, s)
	return e, nil
}

func (a *API) getTenant(c *gin.Context) error {
	ctx := c.Request.Context()
	who := caller.Must(ctx)
	t, err := store.Tenant(ctx, a.DB.Read(ctx), who.Tenant)
	if err != nil {
		return gone(err, domain.ErrTenantNotFound)
	}
	return send(c, view.Tenant(t, who.Mode))
}

func (a *API) getMe(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := domain.ParseKeyID(caller.Must(ctx).Credential)
	if err != nil {
		return domain.ErrCredentialGone.With(err)
	}
	k, err := store.Key(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return gone(err, domain.ErrKeyNotFound)
	}
	return send(c, view.Me(k, a.RateLimit))
}
