package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// platformBase is the path of the platform API.
const platformBase = "/platform/v1"

// PlatformAPI contains the dependencies of the platform API's handlers, which run the same use cases as the command line.
type PlatformAPI struct {
	App         *app.App
	Metering    *app.Metering
	Idempotency *idemstore.Store // its Box seals the links of invitations
	Server      *httpx.Server
	Now         func() time.Time

	ErasedServices []string // the other services from which tenants are erased
}

// Mount registers the operations of the platform's contract.
func (a *PlatformAPI) Mount(e *gin.Engine) error {
	e.Use(func(c *gin.Context) { httpx.SetRequestID(c, ids.New[ids.RequestPrefix]().String()) })
	direct := httpx.DirectAPI{Document: proto.Platform, Base: platformBase, Authenticate: a.authenticate}
	return a.Server.MountDirect(e, direct, map[string]httpx.Route{
		"createTenant":  {Handle: a.createTenant},
		"listTenants":   {Handle: a.listTenants},
		"getTenant":     {Handle: a.getTenant},
		"updateTenant":  {Handle: a.updateTenant, Exists: a.tenantExists},
		"suspendTenant": {Handle: a.act(domain.SuspendTenant), Exists: a.tenantExists},
		"resumeTenant":  {Handle: a.act(domain.ResumeTenant), Exists: a.tenantExists},
		"closeTenant":   {Handle: a.act(domain.CloseTenant), Exists: a.tenantExists},
		"reopenTenant":  {Handle: a.act(domain.ReopenTenant), Exists: a.tenantExists},

		"getTenantErasure": {Handle: a.getErasure},

		"getTenantLimits": {Handle: a.getLimits},
		"setTenantLimits": {Handle: a.setLimits, Exists: a.tenantExists},
		"inviteOwner":     {Handle: a.inviteOwner, Exists: a.tenantExists},
		"listOwners":      {Handle: a.listOwners, Exists: a.tenantExists},
		"removeOwner":     {Handle: a.removeOwner, Exists: a.tenantExists},
		"listApiKeys":     {Handle: a.listKeys, Exists: a.tenantExists},
		"createApiKey":    {Handle: a.createKey, Exists: a.tenantExists},
		"revokeApiKey":    {Handle: a.revokeKey, Exists: a.tenantExists},
		"rotateApiKey":    {Handle: a.rotateKey, Exists: a.tenantExists},

		"listAuditRecords": {Handle: a.listAudit, Exists: a.tenantExists},

		"verifyApp":   {Handle: a.verifyApp(true), Exists: a.appExists},
		"unverifyApp": {Handle: a.verifyApp(false), Exists: a.appExists},

		"listUsage":             {Handle: a.listUsage},
		"listTenantUsage":       {Handle: a.listTenantUsage, Exists: a.usedByTenant},
		"getTenantUsageToday":   {Handle: a.getTenantUsageToday, Exists: a.tenantExists},
		"listUsageMonths":       {Handle: a.listUsageMonths},
		"listTenantUsageMonths": {Handle: a.listTenantUsageMonths, Exists: a.usedByTenant},
		"listBackgroundWork":    {Handle: a.listBackgroundWork, Exists: a.tenantExists},
	})
}

// authenticate finds the platform key of the request, and makes it the caller.
func (a *PlatformAPI) authenticate(c *gin.Context) error {
	scheme, secret, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return domain.ErrNoPlatformKey
	}
	ctx := c.Request.Context()
	key, err := a.App.UsePlatformKey(ctx, strings.TrimSpace(secret))
	if err != nil {
		return err
	}
	who := caller.Caller{
		Tenant: domain.PlatformTenant, Mode: caller.Live, Credential: key.ID.String(), Kind: "platform_key", Scopes: key.Scopes, RequestID: httpx.RequestID(c),
	}
	obs.AddCaller(ctx, who)
	c.Request = c.Request.WithContext(caller.With(ctx, who))
	return nil
}

// origin is the actor of the audit records of a request.
func platformOrigin(ctx context.Context) domain.Origin {
	who := caller.FromContext(ctx)
	return domain.Origin{Actor: who.Credential, Source: "platform:" + who.RequestID}
}

// tenantID reads the tenant of the path.
func tenantID(text string) (ids.Tenant, error) {
	id, err := ids.Parse[ids.TenantPrefix](text)
	if err != nil {
		return ids.Tenant{}, domain.ErrTenantNotFound
	}
	return id, nil
}

// tenantExists returns the 404 for a tenant of the path that does not exist.
func (a *PlatformAPI) tenantExists(ctx context.Context, text string) error {
	_, err := a.tenant(ctx, text)
	return err
}

func (a *PlatformAPI) tenant(ctx context.Context, text string) (domain.Tenant, error) {
	id, err := tenantID(text)
	if err != nil {
		return domain.Tenant{}, err
	}
	return a.App.Tenant(ctx, id.String())
}

// write runs a use case about a tenant in the transaction that stores its response, publishes the invalidations, and responds. A request
// that repeats an Idempotency-Key receives the stored response. The tenant is zero if the use case creates it. The response is stored
// under the ID of the tenant, whatever it describes, so that the erasure of the tenant finds it.
func (a *PlatformAPI) write(c *gin.Context, status int, tenant ids.Tenant, verb func(ctx context.Context, tx pg.Tx) (rest.Response, error)) error {
	ctx := c.Request.Context()
	res, err := idemstore.Run(ctx, a.Idempotency, verb, func(_ context.Context, v rest.Response) (idem.Response, error) {
		body, err := contract.Encode(v.Body)
		out := idem.Response{Status: status, Resource: v.ID, Body: body}
		if !tenant.IsZero() {
			out.Resource = tenant.String()
		}
		if v.Version > 0 {
			out.ETag = httpx.ETag(v.Version)
		}
		if v.Version > 0 && status == http.StatusCreated {
			out.Location = platformBase + "/tenants/" + v.ID
		}
		return out, err
	})
	if err != nil {
		return err
	}
	if !tenant.IsZero() {
		if err := a.App.PublishInvalidations(ctx, ids.Tenant{}); err != nil { // those of its apps' grants belong to many tenants; RetryPublish retries later
			obs.Add(ctx, slog.String("error", err.Error()))
		}
	}
	return httpx.Send(c, res)
}
