package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// manageOwners is the scope that adds an owner to a tenant that has one.
const manageOwners = "manage:owners"

func (a *PlatformAPI) inviteOwner(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[platformapi.OwnerInvite](c)
	if err != nil {
		return err
	}
	in := app.Invitation{
		Tenant: id, Email: body.Email, Name: body.Name, Role: string(domain.Owner), FirstOwner: !caller.FromContext(c.Request.Context()).Has(manageOwners),
	}
	return a.write(c, http.StatusCreated, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		o, token, err := a.App.InviteOperatorAs(ctx, tx, platformOrigin(ctx), in)
		if errors.Is(err, domain.ErrOwnerPresent) {
			return rest.Response{}, httpx.MissingScope(manageOwners)
		}
		link := ""
		if token != "" {
			link = domain.LinkURL(a.App.AuthURL, token)
		}
		return rest.Response{ID: o.ID.String(), Body: view.PlatformOwner(o, link)}, err
	})
}

func (a *PlatformAPI) listKeys(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	t, err := a.tenant(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	var before domain.KeyID
	if cursor := q.String("cursor"); cursor != "" {
		if before, err = domain.ParseKeyID(cursor); err != nil {
			return domain.ErrCursor
		}
	}
	keys, more, err := a.App.KeyPage(ctx, store.TenantMode{TenantID: t.ID, Livemode: q.String("mode") == string(caller.Live)}, before, q.Int("limit", pageSize))
	if err != nil {
		return err
	}
	return rest.Object(c, view.PlatformAPIKeys(keys, more, a.Now()))
}

func (a *PlatformAPI) createKey(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[platformapi.APIKeyCreate](c)
	if err != nil {
		return err
	}
	scopes, err := scopeList(body.Scopes)
	if err != nil {
		return err
	}
	in := app.NewKey{Tenant: id, Mode: string(body.Mode), Name: body.Name, Scopes: scopes, ExpiresAt: patch.FromNullable(body.ExpiresAt).Pointer()}
	return a.write(c, http.StatusCreated, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		k, secret, err := a.App.CreateKeyAs(ctx, tx, platformOrigin(ctx), in)
		return rest.Response{ID: k.ID.String(), Body: view.PlatformNewKey(k, secret, a.Now())}, err
	})
}

func (a *PlatformAPI) revokeKey(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	key, err := domain.ParseKeyID(c.Param("key"))
	if err != nil {
		return err
	}
	return a.write(c, http.StatusOK, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		k, err := a.App.RevokeKeyAs(ctx, tx, platformOrigin(ctx), id, key)
		return rest.Response{ID: k.ID.String(), Body: view.PlatformAPIKey(k, a.Now())}, err
	})
}

func (a *PlatformAPI) rotateKey(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	key, err := domain.ParseKeyID(c.Param("key"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[platformapi.KeyRotation](c)
	if err != nil {
		return err
	}
	r := app.Rotation{Overlap: rotationOverlap, ExpiresAt: patch.FromNullable(body.ExpiresAt)}
	if body.PreviousKeyExpiresIn != nil {
		r.Overlap = time.Duration(*body.PreviousKeyExpiresIn) * time.Second
	}
	return a.write(c, http.StatusCreated, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		k, secret, err := a.App.RotateKeyAs(ctx, tx, platformOrigin(ctx), id, key, r)
		return rest.Response{ID: k.ID.String(), Body: view.PlatformNewKey(k, secret, a.Now())}, err
	})
}

// rotationOverlap is how long a rotated key works if the request does not say it, as in the contract.
const rotationOverlap = 24 * time.Hour

func (a *PlatformAPI) listOwners(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	t, err := a.tenant(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	var after domain.OperatorID
	if cursor := q.String("cursor"); cursor != "" {
		if after, err = domain.ParseOperatorID(cursor); err != nil {
			return domain.ErrCursor
		}
	}
	list, more, err := a.App.OwnerPage(ctx, t.ID, after, q.Int("limit", pageSize))
	if err != nil {
		return err
	}
	return rest.Object(c, view.PlatformOwners(list, more))
}

func (a *PlatformAPI) removeOwner(c *gin.Context) error {
	id, err := tenantID(c.Param("id"))
	if err != nil {
		return err
	}
	owner, err := domain.ParseOperatorID(c.Param("owner"))
	if err != nil {
		return err
	}
	return a.write(c, http.StatusOK, id, func(ctx context.Context, tx pg.Tx) (rest.Response, error) {
		m, err := a.App.RemoveOwnerAs(ctx, tx, platformOrigin(ctx), id, owner)
		return rest.Response{ID: m.ID.String(), Body: view.PlatformTenantOwner(m)}, err
	})
}

// listAudit returns records of the audit log of a tenant.
func (a *PlatformAPI) listAudit(c *gin.Context) error {
	q := httpx.Query(c)
	t, err := a.tenant(c.Request.Context(), c.Param("id"))
	if err != nil {
		return err
	}
	f := auditQuery(q, t.ID)
	if cursor := q.String("cursor"); cursor != "" {
		if f.Before, err = strconv.ParseInt(cursor, 10, 64); err != nil || f.Before < 1 {
			return domain.ErrCursor
		}
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), auditTime)
	defer cancel()
	records, more, err := a.App.AuditPage(ctx, f, q.Int("limit", pageSize))
	if err != nil {
		return inTime(ctx, err)
	}
	return rest.Object(c, view.PlatformAuditRecords(records, more))
}
