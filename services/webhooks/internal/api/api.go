// Package api contains the HTTP handlers by operationId: each decodes the request, makes one call and encodes the response.
package api

import (
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/app"
)

// API contains the dependencies of the handlers.
type API struct {
	DB          *pg.DB
	Idempotency *idemstore.Store
	Endpoints   *app.Endpoints
	Deliveries  *app.Deliveries
	Grants      *app.EndpointGrants
	Streams     *Streams
	Pages       *page.Codec
	Server      *httpx.Server
	Now         func() time.Time
}

// Mount registers the handler of each operation and of the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	err := a.Server.MountInternal(e, proto.InternalWebhooks, map[string]httpx.Route{
		"listEventsOfObjects":   {Handle: a.eventsOfObjects},
		"getSentDelivery":       {Handle: a.sentDelivery},
		"listFailingDeliveries": {Handle: a.failingDeliveries},
		"listEndpointGrants":    {Handle: a.endpointGrants},
		"endEndpointGrants":     {Handle: a.endEndpointGrants},
	})
	if err := errors.Join(err, a.usage().Mount(a.Server, e)); err != nil {
		return err
	}
	return a.Server.Mount(e, map[string]httpx.Route{
		"createWebhookEndpoint": {Handle: a.createEndpoint},
		"listWebhookEndpoints":  {Handle: a.listEndpoints},
		"getWebhookEndpoint":    {Handle: a.getEndpoint, Exists: a.endpoints().Exists},
		"updateWebhookEndpoint": {Handle: a.updateEndpoint, Exists: a.endpoints().Exists},
		"deleteWebhookEndpoint": {Handle: a.deleteEndpoint, Exists: a.endpoints().Exists},
		"rotateWebhookSecret":   {Handle: a.rotateSecret, Exists: a.endpoints().Exists},
		"testWebhookEndpoint":   {Handle: a.testEndpoint, Exists: a.endpoints().Exists},
		"listEventTypes":        {Handle: a.listEventTypes},

		"listDeliveries": {Handle: a.listDeliveries, Exists: a.endpoints().Exists},
		"retryDelivery":  {Handle: a.retryDelivery, Exists: a.endpoints().Exists},

		"listEvents":   {Handle: a.listEvents},
		"getEvent":     {Handle: a.getEvent, Exists: a.events().Exists},
		"streamEvents": {Handle: a.streamEvents},
		"resendEvent":  {Handle: a.resendEvent, Exists: a.events().Exists},
		"replayEvents": {Handle: a.replayEvents},
	})
}
