package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
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
	return rest.Object(c, view.TestClock(a.now(ctx), caller.FromContext(ctx).Clock != nil))
}

// setTestClock looks for the stored answer first: identity is asked before the transaction that keeps the answer.
func (a *API) setTestClock(c *gin.Context) error {
	ctx := c.Request.Context()
	body, err := httpx.Body[api.TestClockSet](c)
	if err != nil {
		return err
	}
	if err := a.Clocks.Allowed(ctx); err != nil {
		return err
	}
	if prior, err := a.Answers.Check(ctx); err != nil {
		return err
	} else if prior != nil {
		return httpx.Send(c, *prior)
	}
	now, err := a.Clocks.Set(ctx, body.Now)
	if err != nil {
		return err
	}
	reply, err := idemstore.Run(ctx, a.Answers, func(context.Context, pg.Tx) (time.Time, error) { return now, nil }, renderClock)
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// renderClock is the answer of a clock that is frozen at now.
func renderClock(_ context.Context, now time.Time) (idem.Reply, error) {
	body, err := contract.Encode(view.TestClock(now, true))
	return idem.Reply{Status: http.StatusOK, Body: body}, err
}

func (a *API) deleteTestClock(c *gin.Context) error {
	if err := a.Clocks.Reset(c.Request.Context()); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}
