package api_test

import (
	"net/http"
	"testing"

	"holdfast.dev/libs/apitest"
)

func TestOverload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	w.Overloaded(ctx, w.serve, []apitest.Request{
		{Method: http.MethodGet, Path: "/request-logs?status=4xx"},
		{Method: http.MethodGet, Path: "/request-logs/" + w.store(ctx, 1)[0].ID.String()},
	})
}
