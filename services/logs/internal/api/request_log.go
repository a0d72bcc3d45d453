package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
	"holdfast.dev/services/logs/internal/view"
)

// requestLogs returns the collection with which the handlers read a request.
func (a *API) requestLogs() rest.Collection[domain.RequestID, domain.RequestLog] {
	return rest.Collection[domain.RequestID, domain.RequestLog]{
		Parse: ids.Parse[ids.RequestPrefix],
		DB:    a.DB, NotFound: domain.ErrRequestLogNotFound,
		Load: func(ctx context.Context, q pg.Q, id domain.RequestID) (domain.RequestLog, error) {
			return store.RequestLog(ctx, q, id, a.from())
		},
	}
}

// getRequestLog responds with one request.
func (a *API) getRequestLog(c *gin.Context) error {
	ctx := c.Request.Context()
	l, err := a.requestLogs().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return rest.Object(c, view.RequestLog(l, httpx.Mode(ctx)))
}

// listRequestLogs responds with one page of requests.
func (a *API) listRequestLogs(c *gin.Context) error {
	q := httpx.Query(c)
	f := store.Filter{
		Status: domain.ParseStatus(q.String("status")), Code: q.String("code"), Method: q.String("method"), Route: q.String("route"),
		CredentialID: q.String("credential_id"), ObjectID: q.String("object_id"),
	}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, _ pg.Q, r page.Request) (page.Rows[domain.RequestLog], error) {
		return store.RequestLogs(ctx, f.Reader(ctx, a.DB), f, r, a.from())
	}, func(l domain.RequestLog) page.SortKey { return page.SortKey{ID: l.ID.UUID(), Created: l.ID.Time()} }, view.RequestLog)
}
