package rest

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"
)

// Outcome specifies how to create the response if the result of a verb is not a resource of a Collection, such as a test delivery
// or a count.
type Outcome[V any] struct {
	Status int
	Show   func(v V, mode api.Mode) Response
}

// Run runs a verb in its transaction, once per Idempotency-Key, and responds with its outcome.
func Run[V any](c *gin.Context, idempotency *idemstore.Store, o Outcome[V], verb func(ctx context.Context, tx pg.Tx) (V, error)) error {
	res, err := idemstore.Run(c.Request.Context(), idempotency, verb, func(ctx context.Context, v V) (idem.Response, error) {
		return o.Show(v, httpx.Mode(ctx)).response(o.Status)
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, res)
}

// OperateFor runs an operation and responds with its outcome.
func OperateFor[V any](c *gin.Context, idempotency *idemstore.Store, o Outcome[V], op operation.Operation[V]) error {
	res, err := operate(c.Request.Context(), idempotency, operation.MaxWait, op, func(ctx context.Context, v V) (idem.Response, error) {
		return o.Show(v, httpx.Mode(ctx)).response(o.Status)
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, res)
}

// RunOn is Run for a verb on the resource of the path.
func RunOn[ID, T, V any](
	c *gin.Context, r Collection[ID, T], o Outcome[V],
	verb func(ctx context.Context, tx pg.Tx, id ID, match patch.Precondition) (V, error),
) error {
	id, err := r.parse(c.Param("id"))
	if err != nil {
		return err
	}
	err = Run(c, r.Idempotency, o, func(ctx context.Context, tx pg.Tx) (V, error) { return verb(ctx, tx, id, httpx.IfMatch(c)) })
	return r.otherMode(c.Request.Context(), id, err)
}
