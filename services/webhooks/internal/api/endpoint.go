package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// endpoints returns the collection with which the handlers read and show an endpoint.
func (a *API) endpoints() rest.Collection[ids.ID[domain.EndpointPrefix], domain.Endpoint] {
	return rest.Collection[ids.ID[domain.EndpointPrefix], domain.Endpoint]{
		Parse: ids.Parse[domain.EndpointPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "webhook-endpoints", NotFound: domain.ErrEndpointNotFound, Load: store.Endpoint,
		Show: func(e domain.Endpoint, mode api.Mode) rest.Response {
			return rest.Response{ID: e.ID.String(), Version: e.Version, Body: view.Endpoint(e, mode)}
		},
	}
}

// endpointsWithSecret returns the collection with which the handlers show an endpoint and its new secret.
func (a *API) endpointsWithSecret() rest.Collection[ids.ID[domain.EndpointPrefix], domain.EndpointWithSecret] {
	return rest.Collection[ids.ID[domain.EndpointPrefix], domain.EndpointWithSecret]{
		Parse: ids.Parse[domain.EndpointPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "webhook-endpoints", NotFound: domain.ErrEndpointNotFound,
		Load: func(ctx context.Context, q pg.Q, id domain.EndpointID) (domain.EndpointWithSecret, error) {
			e, err := store.Endpoint(ctx, q, id)
			return domain.EndpointWithSecret{Endpoint: e}, err
		},
		Show: func(e domain.EndpointWithSecret, mode api.Mode) rest.Response {
			return rest.Response{ID: e.ID.String(), Version: e.Version, Body: view.EndpointWithSecret(e, mode)}
		},
	}
}

func (a *API) createEndpoint(c *gin.Context) error {
	return rest.Create(c, a.endpointsWithSecret(), fromEndpointCreate, a.Endpoints.Prepare, a.Endpoints.Create)
}

func (a *API) updateEndpoint(c *gin.Context) error {
	return rest.Update(c, a.endpoints(), fromEndpointUpdate, a.Endpoints.Prepare, a.Endpoints.Update)
}

func (a *API) deleteEndpoint(c *gin.Context) error {
	return rest.Delete(c, a.endpoints(), a.Endpoints.Delete)
}

func (a *API) rotateSecret(c *gin.Context) error {
	return rest.Update(c, a.endpointsWithSecret(), fromSecretRotate, rest.None, a.Endpoints.Rotate)
}

func (a *API) getEndpoint(c *gin.Context) error { return rest.Get(c, a.endpoints()) }

func (a *API) listEndpoints(c *gin.Context) error {
	status := domain.Status(httpx.Query(c).String("status"))
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Endpoint], error) {
		return store.Endpoints(ctx, db, status, r)
	}, func(e domain.Endpoint) page.SortKey {
		return page.SortKey{ID: e.ID.UUID(), Created: e.CreatedAt, Updated: e.UpdatedAt}
	}, view.Endpoint)
}

// listEventTypes responds with all event types with their scopes.
func (a *API) listEventTypes(c *gin.Context) error {
	data := make([]json.RawMessage, len(proto.EventTypes))
	for i, t := range proto.EventTypes {
		var err error
		data[i], err = contract.Encode(api.EventTypeInfo{Object: "event_type", Type: api.EventType(t.Name), Description: t.Description, RequiredScope: t.Scope})
		if err != nil {
			return err
		}
	}
	return httpx.JSON(c, http.StatusOK, "", httpx.ListBody(data, false, ""))
}

func fromEndpointCreate(b api.WebhookEndpointCreate) domain.EndpointPatch {
	return fromEndpointUpdate(api.WebhookEndpointUpdate{
		Url: &b.Url, EventTypes: &b.EventTypes, Description: b.Description, MaxInFlight: b.MaxInFlight, MaxPerSecond: b.MaxPerSecond,
		Headers: b.Headers,
	})
}

func fromEndpointUpdate(b api.WebhookEndpointUpdate) domain.EndpointPatch {
	p := domain.EndpointPatch{
		URL: patch.FromPointer(b.Url), Description: patch.FromNullable(b.Description),
		Status: patch.FromPointer((*domain.Status)(b.Status)), MaxInFlight: patch.FromPointer(b.MaxInFlight),
		MaxPerSecond: patch.FromPointer(b.MaxPerSecond), Headers: fromHeaders(patch.FromNullable(b.Headers)),
	}
	if b.EventTypes != nil {
		p.EventTypes = patch.Value(names(*b.EventTypes))
	}
	return p
}

// fromHeaders leaves out headers whose value is null. Null means no headers.
func fromHeaders(f patch.Field[api.WebhookHeaders]) patch.Field[domain.EndpointHeaders] {
	if !f.Given() {
		return patch.Field[domain.EndpointHeaders]{}
	}
	out := domain.EndpointHeaders{}
	if given := f.Pointer(); given != nil {
		for name, value := range *given {
			if value != "" { // "": null, because the contract requires a character
				out[name] = value
			}
		}
	}
	return patch.Value(out)
}

// defaultOverlap is the contract's default of previous_secret_expires_in, in seconds.
const defaultOverlap = 86_400

// fromSecretRotate returns how long the earlier secrets remain valid.
func fromSecretRotate(b api.WebhookSecretRotate) time.Duration {
	seconds := defaultOverlap
	if b.PreviousSecretExpiresIn != nil {
		seconds = *b.PreviousSecretExpiresIn
	}
	return time.Duration(seconds) * time.Second
}

// names returns event types as strings.
func names[T ~string](types []T) []string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = string(t)
	}
	return out
}
