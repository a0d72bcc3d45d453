package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
)

// once runs a use case in a transaction of the operator's tenant and of a mode, and stores its 201 response. A repeated request
// with the same Idempotency-Key receives that response. The record belongs to the operator.
func (a *API) once(c *gin.Context, by asker, mode caller.Mode, verb func(ctx context.Context, tx pg.Tx) (any, error)) (idem.Response, error) {
	who := caller.Service("identity", by.Tenant, mode)
	who.Credential, who.RequestID = by.Credential, by.RequestID
	return idemstore.Run(caller.With(c.Request.Context(), who), a.Idempotency, verb, func(_ context.Context, v any) (idem.Response, error) {
		body, err := contract.Encode(v)
		return idem.Response{Status: http.StatusCreated, Body: body}, err
	})
}

// sendOnce is once, and sends the response.
func (a *API) sendOnce(c *gin.Context, by asker, mode caller.Mode, verb func(ctx context.Context, tx pg.Tx) (any, error)) error {
	res, err := a.once(c, by, mode, verb)
	if err != nil {
		return err
	}
	return httpx.Send(c, res)
}
