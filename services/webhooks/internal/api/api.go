// Package api contains the HTTP handlers by operationId: each decodes the request, makes one call and encodes the answer.
package api

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/app"
)

// API contains the dependencies of the handlers.
type API struct {
	DB         *pg.DB // for reads
	Endpoints  *app.Endpoints
	Deliveries *app.Deliveries
	Streams    *Streams
	Pages      *page.Codec
	Server     *httpx.Server
	Now        func() time.Time
}

// Mount registers the handler of each operation.
func (a *API) Mount(e *gin.Engine) error {
	return a.Server.Mount(e, map[string]httpx.Route{
		"createWebhookEndpoint": {Handle: a.createEndpoint},
		"listWebhookEndpoints":  {Handle: a.listEndpoints},
		"getWebhookEndpoint":    {Handle: a.getEndpoint, Exists: a.endpointExists},
		"updateWebhookEndpoint": {Handle: a.updateEndpoint, Exists: a.endpointExists},
		"deleteWebhookEndpoint": {Handle: a.deleteEndpoint, Exists: a.endpointExists},
		"rotateWebhookSecret":   {Handle: a.rotateSecret, Exists: a.endpointExists},
		"testWebhookEndpoint":   {Handle: a.testEndpoint, Exists: a.endpointExists},
		"listEventTypes":        {Handle: a.listEventTypes},

		"listDeliveries": {Handle: a.listDeliveries, Exists: a.endpointExists},
		"retryDelivery":  {Handle: a.retryDelivery, Exists: a.endpointExists},

		"listEvents":   {Handle: a.listEvents},
		"getEvent":     {Handle: a.getEvent, Exists: a.eventExists},
		"streamEvents": {Handle: a.streamEvents},
		"replayEvents": {Handle: a.replayEvents},
	})
}

// mode returns the caller's mode.
func mode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }
