package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/view"
)

// testMode checks that a test clock can exist. Live mode has none, regardless of the rest of the request.
func (a *API) testMode(ctx context.Context, _ string) error { return a.Clocks.Allowed(ctx) }

func (a *API) getTestClock(c *gin.Context) error {
	ctx := c.Request.Context()
	if err := a.Clocks.Allowed(ctx); err != nil {
		return err
	}
	return rest.Object(c, view.TestClock(a.now(ctx), caller.FromContext(ctx).Clock != nil))
}

func (a *API) setTestClock(c *gin.Context) error {
	ctx := c.Request.Context()
	body, err := httpx.Body[api.TestClockSet](c)
	if err != nil {
		return err
	}
	if err := a.Clocks.Allowed(ctx); err != nil {
		return err
	}
	return rest.OperateFor(c, a.Idempotency, rest.Outcome[time.Time]{Status: http.StatusOK, Show: func(now time.Time, _ api.Mode) rest.Response {
		return rest.Response{Body: view.TestClock(now, true)}
	}}, a.Clocks.Set(body.Now))
}

func (a *API) deleteTestClock(c *gin.Context) error {
	if err := a.Clocks.Reset(c.Request.Context()); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}
