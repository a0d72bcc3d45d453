// Package api contains the HTTP handlers by operationId: each decodes the request, makes one call and encodes the response.
package api

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
)

// API contains the dependencies of the handlers.
type API struct {
	DB        *pg.DB
	Pages     *page.Codec
	Server    *httpx.Server
	Retention time.Duration
	Now       func() time.Time
	CaughtUp  func(ctx context.Context) (bool, error) // whether all messages that are in Kafka now are stored
}

// Mount registers the handler of each operation and of the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	if err := a.usage().Mount(a.Server, e); err != nil {
		return err
	}
	return a.Server.Mount(e, map[string]httpx.Route{
		"listRequestLogs": {Handle: a.listRequestLogs},
		"getRequestLog":   {Handle: a.getRequestLog, Exists: a.requestLogs().Exists},
	})
}

// from returns the time before which requests are not returned, even if they are not deleted yet.
func (a *API) from() time.Time { return a.Now().Add(-a.Retention) }
