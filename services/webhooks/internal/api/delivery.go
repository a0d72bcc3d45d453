package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// showDelivery returns the response for a delivery, which has no entity tag.
func showDelivery(d domain.Delivery, mode api.Mode) rest.Response {
	return rest.Response{ID: d.ID.String(), Body: view.Delivery(d, mode)}
}

// listDeliveries responds with one page of an endpoint's deliveries.
func (a *API) listDeliveries(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	e, err := a.endpoints().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	filter := store.DeliveryFilter{Endpoint: e.ID, Status: domain.DeliveryStatus(q.String("status")), Type: q.String("event_type")}
	types := e.EventTypes
	if filter.Type != "" {
		types = []string{filter.Type}
	} else if app.CheckRead(ctx, []string{domain.Every}) != nil {
		filter.Among = app.Readable(ctx) // replays and earlier subscriptions can have created deliveries of other types
	}
	if err := app.CheckRead(ctx, types); err != nil {
		return err
	}
	// The endpoint's id is part of the list's name, so a cursor is valid for one endpoint only.
	req, err := a.Pages.Parse(ctx, q, "listDeliveries "+e.ID.String())
	if err != nil {
		return err
	}
	rows, err := store.Deliveries(ctx, req.Reader(ctx, a.DB), filter, req, a.Now())
	if err != nil {
		return err
	}
	return page.Send(c, a.Pages, req, rows, func(d domain.Delivery) page.SortKey {
		return page.SortKey{ID: d.ID.UUID(), Created: d.ID.Time(), Updated: d.UpdatedAt}
	}, func(d domain.Delivery) api.Delivery { return view.Delivery(d, httpx.Mode(ctx)) })
}

// sentDelivery responds with a delivery and the sent headers and body.
func (a *API) sentDelivery(c *gin.Context) error {
	ctx := c.Request.Context()
	endpoint, err := domain.ParseEndpointID(c.Param("id"))
	if err != nil {
		return err
	}
	id, err := domain.ParseDeliveryID(c.Param("delivery_id"))
	if err != nil {
		return err
	}
	d, err := store.Delivery(ctx, a.DB.Read(ctx), endpoint, id)
	if err != nil {
		return err
	}
	if err := app.CheckRead(ctx, []string{d.EventType}); err != nil {
		return err
	}
	sent, err := store.SentEvent(ctx, a.DB.Read(ctx), d.EventID, a.Now())
	if err != nil {
		return err
	}
	return rest.Object(c, view.SentDelivery(d, sent, httpx.Mode(ctx)))
}

// failingDeliveries responds with the failing deliveries of all endpoints, of the types that the caller may read.
func (a *API) failingDeliveries(c *gin.Context) error {
	ctx := c.Request.Context()
	list, err := store.FailingDeliveries(ctx, a.DB.Read(ctx), app.Readable(ctx), a.Now().Add(-domain.RecentlyFailed))
	if err != nil {
		return err
	}
	out := internalapi.FailingDeliveries{Data: make([]api.Delivery, len(list))}
	for i, d := range list {
		out.Data[i] = view.Delivery(d, httpx.Mode(ctx))
	}
	return rest.Object(c, out)
}

// testEndpoint sends a sample event to an endpoint and responds with its delivery.
func (a *API) testEndpoint(c *gin.Context) error {
	b, err := httpx.Body[api.WebhookTest](c)
	if err != nil {
		return err
	}
	eventType := ""
	if b.Type != nil {
		eventType = string(*b.Type)
	}
	return rest.RunOn(c, a.endpoints(), rest.Outcome[domain.Delivery]{Status: http.StatusAccepted, Show: showDelivery},
		func(ctx context.Context, tx pg.Tx, id domain.EndpointID, match patch.Precondition) (domain.Delivery, error) {
			return a.Deliveries.Test(ctx, tx, id, eventType, match)
		})
}

// retryDelivery makes a delivery due now. A malformed id becomes the zero id, which no delivery has, so that errors of the endpoint
// take precedence.
func (a *API) retryDelivery(c *gin.Context) error {
	delivery, _ := domain.ParseDeliveryID(c.Param("delivery_id"))
	return rest.RunOn(c, a.endpoints(), rest.Outcome[domain.Delivery]{Status: http.StatusOK, Show: showDelivery},
		func(ctx context.Context, tx pg.Tx, id domain.EndpointID, _ patch.Precondition) (domain.Delivery, error) {
			return a.Deliveries.Retry(ctx, tx, id, delivery)
		})
}

// resendEvent redelivers one event to an endpoint and responds with the delivery.
func (a *API) resendEvent(c *gin.Context) error {
	b, err := httpx.Body[api.EventResend](c)
	if err != nil {
		return err
	}
	return rest.RunOn(c, a.events(), rest.Outcome[domain.Delivery]{Status: http.StatusAccepted, Show: showDelivery},
		func(ctx context.Context, tx pg.Tx, id ids.Event, _ patch.Precondition) (domain.Delivery, error) {
			return a.Deliveries.Resend(ctx, tx, id, b.EndpointId)
		})
}

// replayEvents redelivers the events of a period to an endpoint and responds with their number.
func (a *API) replayEvents(c *gin.Context) error {
	b, err := httpx.Body[api.EventReplay](c)
	if err != nil {
		return err
	}
	r := app.Replay{Endpoint: b.EndpointId, From: b.From, To: a.Now()}
	if b.To != nil {
		r.To = *b.To
	}
	if b.Types != nil {
		r.Types = names(*b.Types)
	}
	return rest.Run(c, a.Idempotency, rest.Outcome[int]{Status: http.StatusAccepted, Show: func(queued int, _ api.Mode) rest.Response {
		return rest.Response{ID: r.Endpoint, Body: api.EventReplayResult{Queued: queued}}
	}}, func(ctx context.Context, tx pg.Tx) (int, error) { return a.Deliveries.Replay(ctx, tx, r) })
}
