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

// Outcome is how the answer is made of what a verb returns that is not a resource of a Collection, such as a test's
// delivery or a count.
type Outcome[V any] struct {
	Status int
	Show   func(v V, mode api.Mode) Answer
}

// Run runs a verb in its transaction, once per Idempotency-Key, and responds with its outcome.
func Run[V any](c *gin.Context, answers *idemstore.Store, o Outcome[V], verb func(ctx context.Context, tx pg.Tx) (V, error)) error {
	reply, err := idemstore.Run(c.Request.Context(), answers, verb, func(ctx context.Context, v V) (idem.Reply, error) {
		return o.Show(v, httpx.Mode(ctx)).reply(o.Status)
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// OperateFor runs an operation and responds with its outcome.
func OperateFor[V any](c *gin.Context, answers *idemstore.Store, o Outcome[V], op operation.Operation[V]) error {
	reply, err := operate(c.Request.Context(), answers, operation.Patience, op, func(ctx context.Context, v V) (idem.Reply, error) {
		return o.Show(v, httpx.Mode(ctx)).reply(o.Status)
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// RunOn is Run for a verb that does something with the resource of the path.
func RunOn[ID, T, V any](
	c *gin.Context, r Collection[ID, T], o Outcome[V],
	verb func(ctx context.Context, tx pg.Tx, id ID, match patch.Precondition) (V, error),
) error {
	id, err := r.parse(c.Param("id"))
	if err != nil {
		return err
	}
	err = Run(c, r.Answers, o, func(ctx context.Context, tx pg.Tx) (V, error) { return verb(ctx, tx, id, httpx.IfMatch(c)) })
	return r.otherMode(c.Request.Context(), id, err)
}
