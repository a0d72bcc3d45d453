// Package rest has one helper per kind of handler: get, create, update, action, delete, an object without a version, and a
// verb whose outcome is not the resource of the path. A handler passes only what is specific to its resource. A write is
// stored with its answer, so that a repetition with the same Idempotency-Key gets the same answer.
package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"
)

// Answer is a resource in the form of an answer.
type Answer struct {
	ID      string
	Version int64 // the entity tag; 0 for what has none
	Body    any   // the public shape
}

// reply is the answer as it is stored and sent.
func (a Answer) reply(status int) (idem.Reply, error) {
	body, err := contract.Encode(a.Body)
	out := idem.Reply{Status: status, Resource: a.ID, Body: body}
	if a.Version > 0 {
		out.ETag = httpx.ETag(a.Version)
	}
	return out, err
}

// Collection is what the handlers of one kind of resource share.
type Collection[ID, T any] struct {
	DB       *pg.DB
	Answers  *idemstore.Store
	Path     string // of the collection, such as "customers"
	Parse    func(text string) (ID, error)
	NotFound error // for an id that is unknown, malformed or another tenant's
	Load     func(ctx context.Context, q pg.Q, id ID) (T, error)
	Show     func(v T, mode api.Mode) Answer
}

// Read reads the resource of an id in a path. When there is none, the error is NotFound, or apperr.ErrMode when the
// resource belongs to the other mode.
func (r Collection[ID, T]) Read(ctx context.Context, param string) (T, error) {
	var none T
	id, err := r.parse(param)
	if err != nil {
		return none, err
	}
	v, err := r.Load(ctx, r.DB.Read(ctx), id)
	return v, r.otherMode(ctx, id, err)
}

// Exists returns the error of Read; it is the Exists of a Route.
func (r Collection[ID, T]) Exists(ctx context.Context, param string) error {
	_, err := r.Read(ctx, param)
	return err
}

func (r Collection[ID, T]) parse(param string) (ID, error) {
	id, err := r.Parse(param)
	if err != nil {
		return id, r.NotFound
	}
	return id, nil
}

// otherMode replaces NotFound by apperr.ErrMode when the resource belongs to the other mode.
func (r Collection[ID, T]) otherMode(ctx context.Context, id ID, err error) error {
	if !errors.Is(err, r.NotFound) {
		return err
	}
	return pg.NotFoundOrOtherMode(ctx, r.DB, func(ctx context.Context, q pg.Q) error {
		_, err := r.Load(ctx, q, id)
		return err
	})
}

// transact runs writes that answer with a status; reply becomes the answer.
func (r Collection[ID, T]) transact(status int, reply *idem.Reply) pg.Transact[T] {
	return func(ctx context.Context, write func(ctx context.Context, tx pg.Tx) (T, error)) (err error) {
		*reply, err = idemstore.Run(ctx, r.Answers, write, func(ctx context.Context, v T) (idem.Reply, error) {
			shown := r.Show(v, httpx.Mode(ctx))
			out, err := shown.reply(status)
			if status == http.StatusCreated {
				out.Location = httpx.Base + "/" + r.Path + "/" + shown.ID
			}
			return out, err
		})
		return err
	}
}

// Get answers the resource of the path.
func Get[ID, T any](c *gin.Context, r Collection[ID, T]) error {
	ctx := c.Request.Context()
	v, err := r.Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	shown := r.Show(v, httpx.Mode(ctx))
	return httpx.Resource(c, shown.Version, shown.Body)
}

// Object answers a value that has no version, and so no entity tag.
func Object(c *gin.Context, v any) error {
	body, err := contract.Encode(v)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}

// Create makes a resource: from converts the body, and verb makes the resource in its transaction.
func Create[ID, T, B, In any](
	c *gin.Context, r Collection[ID, T], from func(B) In, verb func(ctx context.Context, tx pg.Tx, in In) (T, error),
) error {
	return CreateVia(c, r, from, func(ctx context.Context, transact pg.Transact[T], in In) error {
		return transact(ctx, func(ctx context.Context, tx pg.Tx) (T, error) { return verb(ctx, tx, in) })
	})
}

// CreateVia is Create for a verb that opens its transaction itself.
func CreateVia[ID, T, B, In any](
	c *gin.Context, r Collection[ID, T], from func(B) In, verb func(ctx context.Context, transact pg.Transact[T], in In) error,
) error {
	body, err := httpx.Body[B](c)
	if err != nil {
		return err
	}
	var reply idem.Reply
	if err := verb(c.Request.Context(), r.transact(http.StatusCreated, &reply), from(body)); err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// Update changes the resource of the path: from converts the body, and verb makes the change in its transaction.
func Update[ID, T, B, In any](
	c *gin.Context, r Collection[ID, T], from func(B) In,
	verb func(ctx context.Context, tx pg.Tx, id ID, in In, match patch.Precondition) (T, error),
) error {
	return UpdateVia(c, r, from, func(ctx context.Context, transact pg.Transact[T], id ID, in In, match patch.Precondition) error {
		return transact(ctx, func(ctx context.Context, tx pg.Tx) (T, error) { return verb(ctx, tx, id, in, match) })
	})
}

// UpdateVia is Update for a verb that opens its transaction itself.
func UpdateVia[ID, T, B, In any](
	c *gin.Context, r Collection[ID, T], from func(B) In,
	verb func(ctx context.Context, transact pg.Transact[T], id ID, in In, match patch.Precondition) error,
) error {
	body, err := httpx.Body[B](c)
	if err != nil {
		return err
	}
	return ActionVia(c, r, func(ctx context.Context, transact pg.Transact[T], id ID, match patch.Precondition) error {
		return verb(ctx, transact, id, from(body), match)
	})
}

// ActionVia runs an action on the resource of the path, for requests without a body. The verb opens its transaction
// itself.
func ActionVia[ID, T any](
	c *gin.Context, r Collection[ID, T],
	verb func(ctx context.Context, transact pg.Transact[T], id ID, match patch.Precondition) error,
) error {
	ctx := c.Request.Context()
	id, err := r.parse(c.Param("id"))
	if err != nil {
		return err
	}
	var reply idem.Reply
	if err := verb(ctx, r.transact(http.StatusOK, &reply), id, httpx.IfMatch(c)); err != nil {
		return r.otherMode(ctx, id, err)
	}
	return httpx.Send(c, reply)
}

// Delete deletes the resource of the path in a transaction and answers without a body.
func Delete[ID, T any](
	c *gin.Context, r Collection[ID, T], verb func(ctx context.Context, tx pg.Tx, id ID, match patch.Precondition) error,
) error {
	ctx := c.Request.Context()
	id, err := r.parse(c.Param("id"))
	if err != nil {
		return err
	}
	err = r.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return verb(ctx, tx, id, httpx.IfMatch(c)) })
	if err != nil {
		return r.otherMode(ctx, id, err)
	}
	return httpx.Send(c, idem.Reply{Status: http.StatusNoContent})
}
