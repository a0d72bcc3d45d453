package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// createEndpoint registers an endpoint and answers with its secret.
func (a *API) createEndpoint(c *gin.Context) error {
	b, err := httpx.Body[api.WebhookEndpointCreate](c)
	if err != nil {
		return err
	}
	reply, err := a.Endpoints.Create(c.Request.Context(), app.EndpointChange{
		URL: &b.Url, EventTypes: typeNames(b.EventTypes), Description: clearable(b.Description),
		MaxInFlight: b.MaxInFlight, MaxPerSecond: b.MaxPerSecond,
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// updateEndpoint changes the given fields of an endpoint.
func (a *API) updateEndpoint(c *gin.Context) error {
	b, err := httpx.Body[api.WebhookEndpointUpdate](c)
	if err != nil {
		return err
	}
	change := app.EndpointChange{
		URL: b.Url, Description: clearable(b.Description), Status: (*domain.Status)(b.Status),
		MaxInFlight: b.MaxInFlight, MaxPerSecond: b.MaxPerSecond,
	}
	if b.EventTypes != nil {
		change.EventTypes = typeNames(*b.EventTypes)
	}
	return a.act(c, func(ctx context.Context, id domain.EndpointID) (idem.Reply, error) {
		return a.Endpoints.Update(ctx, id, change, httpx.IfMatch(c))
	})
}

// deleteEndpoint deletes an endpoint.
func (a *API) deleteEndpoint(c *gin.Context) error {
	return a.act(c, func(ctx context.Context, id domain.EndpointID) (idem.Reply, error) {
		return idem.Reply{Status: http.StatusNoContent}, a.Endpoints.Delete(ctx, id, httpx.IfMatch(c))
	})
}

// defaultOverlap is the contract's default of previous_secret_expires_in, in seconds.
const defaultOverlap = 86_400

// rotateSecret gives an endpoint a new secret.
func (a *API) rotateSecret(c *gin.Context) error {
	b, err := httpx.Body[api.WebhookSecretRotate](c)
	if err != nil {
		return err
	}
	seconds := defaultOverlap
	if b.PreviousSecretExpiresIn != nil {
		seconds = *b.PreviousSecretExpiresIn
	}
	return a.act(c, func(ctx context.Context, id domain.EndpointID) (idem.Reply, error) {
		return a.Endpoints.Rotate(ctx, id, time.Duration(seconds)*time.Second, httpx.IfMatch(c))
	})
}

// testEndpoint sends a sample event to an endpoint.
func (a *API) testEndpoint(c *gin.Context) error {
	b, err := httpx.Body[api.WebhookTest](c)
	if err != nil {
		return err
	}
	eventType := ""
	if b.Type != nil {
		eventType = string(*b.Type)
	}
	return a.act(c, func(ctx context.Context, id domain.EndpointID) (idem.Reply, error) {
		return a.Endpoints.Test(ctx, id, eventType, httpx.IfMatch(c))
	})
}

// act runs a use case for the endpoint of the path and sends its reply.
func (a *API) act(c *gin.Context, useCase func(ctx context.Context, id domain.EndpointID) (idem.Reply, error)) error {
	id, err := domain.ParseEndpointID(c.Param("id"))
	if err != nil {
		return err
	}
	reply, err := useCase(c.Request.Context(), id)
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// getEndpoint answers one endpoint.
func (a *API) getEndpoint(c *gin.Context) error {
	ctx := c.Request.Context()
	e, err := a.endpoint(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, e.Version, view.Endpoint(e, mode(ctx)))
}

// listEndpoints answers one page of endpoints.
func (a *API) listEndpoints(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	req, err := a.Pages.Parse(ctx, q, "listWebhookEndpoints")
	if err != nil {
		return err
	}
	rows, err := store.Endpoints(ctx, req.Reader(ctx, a.DB), domain.Status(q.String("status")), req)
	if err != nil {
		return err
	}
	return page.Send(c, a.Pages, req, rows, func(e domain.Endpoint) page.Place {
		return page.Place{ID: e.ID.UUID(), Created: e.CreatedAt, Updated: e.UpdatedAt}
	}, func(e domain.Endpoint) api.WebhookEndpoint { return view.Endpoint(e, mode(ctx)) })
}

// listEventTypes answers all event types with their scopes.
func (a *API) listEventTypes(c *gin.Context) error {
	data := make([]json.RawMessage, len(proto.EventTypes))
	for i, t := range proto.EventTypes {
		var err error
		data[i], err = contract.Encode(api.EventTypeInfo{Type: api.EventType(t.Name), Description: t.Description, RequiredScope: t.Scope})
		if err != nil {
			return err
		}
	}
	return httpx.JSON(c, http.StatusOK, "", httpx.ListBody(data, false, ""))
}

// endpoint reads an endpoint of the caller's. When it is not found, the error is a 404, or a 403 when the endpoint is of the
// other mode.
func (a *API) endpoint(ctx context.Context, param string) (domain.Endpoint, error) {
	id, err := domain.ParseEndpointID(param)
	if err != nil {
		return domain.Endpoint{}, err
	}
	e, err := store.Endpoint(ctx, a.DB.Read(ctx), id)
	if errors.Is(err, domain.ErrEndpointNotFound) {
		err = pg.NotFoundOrOtherMode(ctx, a.DB, func(ctx context.Context, q pg.Q) error {
			_, err := store.Endpoint(ctx, q, id)
			return err
		})
	}
	return e, err
}

// endpointExists returns the error of endpoint.
func (a *API) endpointExists(ctx context.Context, id string) error {
	_, err := a.endpoint(ctx, id)
	return err
}

// typeNames returns the types as strings.
func typeNames(list []api.EventTypeWrite) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}

// clearable returns nil when the field is missing, and a pointer to nil when it is null.
func clearable(n nullable.Nullable[string]) **string {
	if !n.IsSpecified() {
		return nil
	}
	var to *string
	if v, err := n.Get(); err == nil {
		to = &v
	}
	return &to
}
