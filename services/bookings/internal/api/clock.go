package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/view"
)

// testMode is the existence of a test clock: in live mode there is none, whatever the request says.
func (a *API) testMode(ctx context.Context, _ string) error { return a.Clocks.Allowed(ctx) }

func (a *API) getTestClock(c *gin.Context) error {
	ctx := c.Request.Context()
	if err := a.Clocks.Allowed(ctx); err != nil {
		return err
	}
	body, err := httpx.Encode(view.TestClock(a.now(ctx), caller.Must(ctx).Clock != nil))
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}

func (a *API) setTestClock(c *gin.Context) error {
	body, err := httpx.Body[api.TestClockSet](c)
	if err != nil {
		return err
	}
	reply, err := a.Clocks.Set(c.Request.Context(), body.Now)
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func (a *API) deleteTestClock(c *gin.Context) error {
	if err := a.Clocks.Reset(c.Request.Context()); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}
