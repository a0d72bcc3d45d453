package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/page"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// listDeliveries answers one page of an endpoint's deliveries.
func (a *API) listDeliveries(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	e, err := a.endpoint(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	filter := store.DeliveryFilter{Endpoint: e.ID, Status: domain.DeliveryStatus(q.String("status")), Type: q.String("event_type")}
	types := e.EventTypes
	if filter.Type != "" {
		types = []string{filter.Type}
	} else if app.MayRead(ctx, []string{domain.Every}) != nil {
		filter.Among = app.Readable(ctx) // replays and earlier subscriptions may have made deliveries of other types
	}
	if err := app.MayRead(ctx, types); err != nil {
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
	return page.Send(c, a.Pages, req, rows, func(d domain.Delivery) page.Place {
		return page.Place{ID: d.ID.UUID(), Created: d.ID.Time(), Updated: d.UpdatedAt}
	}, func(d domain.Delivery) api.Delivery { return view.Delivery(d, mode(ctx)) })
}

// retryDelivery makes a delivery due now.
func (a *API) retryDelivery(c *gin.Context) error {
	if _, err := httpx.Body[api.DeliveryRetry](c); err != nil {
		return err
	}
	return a.act(c, func(ctx context.Context, endpoint domain.EndpointID) (idem.Reply, error) {
		id, err := domain.ParseDeliveryID(c.Param("delivery_id"))
		if err != nil {
			if missing := a.endpointExists(ctx, endpoint.String()); missing != nil {
				return idem.Reply{}, missing
			}
			return idem.Reply{}, err
		}
		return a.Deliveries.Retry(ctx, endpoint, id)
	})
}

// replayEvents delivers the events of a period to an endpoint again.
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
		for _, t := range *b.Types {
			r.Types = append(r.Types, string(t))
		}
	}
	reply, err := a.Deliveries.Replay(c.Request.Context(), r)
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}
