// Package rest contains one helper per kind of handler: get, create, update, action, delete, an object without a version, and a
// verb whose outcome is not the resource of the path. A handler passes only what is specific to its resource. A write is stored
// with its response, so that a repeated request with the same Idempotency-Key receives the same response.
package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"
)

// Response is a resource in the form of a response.
type Response struct {
	ID      string
	Version int64 // the entity tag; 0 if there is none
	Body    any   // the public shape
}

// response returns the response as it is stored and sent.
func (a Response) response(status int) (idem.Response, error) {
	body, err := contract.Encode(a.Body)
	out := idem.Response{Status: status, Resource: a.ID, Body: body}
	if a.Version > 0 {
		out.ETag = httpx.ETag(a.Version)
	}
	return out, err
}

// Collection contains what the handlers of one kind of resource share.
type Collection[ID, T any] struct {
	DB          *pg.DB
	Idempotency *idemstore.Store
	Path        string // of the collection, such as "customers"
	Parse       func(text string) (ID, error)
	MaxWait     time.Duration // how long a write waits for another attempt; 0: operation.MaxWait
	NotFound    error         // for an id that is unknown, malformed or of another tenant
	Load        func(ctx context.Context, q pg.Q, id ID) (T, error)
	Show        func(v T, mode api.Mode) Response
}

// Read reads the resource with the id in a path. If there is none, the error is NotFound, or apperr.ErrMode if the resource belongs
// to the other mode.
func (r Collection[ID, T]) Read(ctx context.Context, param string) (T, error) {
	var none T
	id, err := r.parse(param)
	if err != nil {
		return none, err
	}
	v, err := r.Load(ctx, r.DB.Read(ctx), id)
	return v, r.otherMode(ctx, id, err)
}

// Exists returns the error of Read. It is the Exists of a Route.
func (r Collection[ID, T]) Exists(ctx context.Context, param string) error {
	_, err := r.Read(ctx, param)
	return err
}

// ID reads the id in the request's path.
func (r Collection[ID, T]) ID(c *gin.Context) (ID, error) { return r.parse(c.Param("id")) }

func (r Collection[ID, T]) parse(param string) (ID, error) {
	id, err := r.Parse(param)
	if err != nil {
		return id, r.NotFound
	}
	return id, nil
}

// otherMode replaces NotFound with apperr.ErrMode if the resource belongs to the other mode.
func (r Collection[ID, T]) otherMode(ctx context.Context, id ID, err error) error {
	if !errors.Is(err, r.NotFound) {
		return err
	}
	return pg.NotFoundOrOtherMode(ctx, r.DB, func(ctx context.Context, q pg.Q) error {
		_, err := r.Load(ctx, q, id)
		return err
	})
}

// write runs a use case in the transaction that stores the record of the key, the event and the response.
func (r Collection[ID, T]) write(
	ctx context.Context, status int, use func(ctx context.Context, tx pg.Tx) (T, error),
) (res idem.Response, err error) {
	err = operation.Retry(ctx, cmp.Or(r.MaxWait, operation.MaxWait), func(ctx context.Context) (err error) {
		res, err = idemstore.Run(ctx, r.Idempotency, use, func(ctx context.Context, v T) (idem.Response, error) { return r.response(ctx, status, v) })
		return err
	})
	return res, err
}

func (r Collection[ID, T]) response(ctx context.Context, status int, v T) (idem.Response, error) {
	shown := r.Show(v, httpx.Mode(ctx))
	out, err := shown.response(status)
	if status == http.StatusCreated {
		out.Location = httpx.Base + "/" + r.Path + "/" + shown.ID
	}
	return out, err
}

// Get responds with the resource of the path.
func Get[ID, T any](c *gin.Context, r Collection[ID, T]) error {
	ctx := c.Request.Context()
	v, err := r.Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	shown := r.Show(v, httpx.Mode(ctx))
	return httpx.Resource(c, shown.Version, shown.Body)
}

// Object responds with a value that has no version and therefore no entity tag.
func Object(c *gin.Context, v any) error {
	body, err := contract.Encode(v)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}

// None is the preparation of a use case without lookups.
func None[In any](_ context.Context, in In) (In, error) { return in, nil }

// Create creates a resource: from converts the body, prepare looks up what the use case needs, and create creates the resource in
// the transaction that stores the record of the key, the event and the response. An error of prepare is returned in that
// transaction, because an earlier success with the same key takes precedence.
func Create[ID, T, B, In, P any](
	c *gin.Context, r Collection[ID, T], from func(B) In, prepare func(ctx context.Context, in In) (P, error),
	create func(ctx context.Context, tx pg.Tx, p P) (T, error),
) error {
	body, err := httpx.Body[B](c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	p, failed := prepare(ctx, from(body))
	res, err := r.write(ctx, http.StatusCreated, func(ctx context.Context, tx pg.Tx) (none T, err error) {
		if failed != nil {
			return none, failed
		}
		return create(ctx, tx, p)
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, res)
}

// Update changes the resource of the path: from converts the body, prepare looks up what the use case needs, and update makes
// the change in the transaction that stores the record of the key, the event and the response.
func Update[ID, T, B, In, P any](
	c *gin.Context, r Collection[ID, T], from func(B) In, prepare func(ctx context.Context, in In) (P, error),
	update func(ctx context.Context, tx pg.Tx, id ID, p P, match patch.Precondition) (T, error),
) error {
	body, err := httpx.Body[B](c)
	if err != nil {
		return err
	}
	return change(c, r, func(ctx context.Context) (P, error) { return prepare(ctx, from(body)) }, update)
}

// Action runs an action on the resource of the path like Update, but for requests without a body.
func Action[ID, T, P any](
	c *gin.Context, r Collection[ID, T], prepare func(ctx context.Context) (P, error),
	act func(ctx context.Context, tx pg.Tx, id ID, p P, match patch.Precondition) (T, error),
) error {
	return change(c, r, prepare, act)
}

// Act runs an action without lookups.
func Act[ID, T any](c *gin.Context, r Collection[ID, T], act func(ctx context.Context, tx pg.Tx, id ID, match patch.Precondition) (T, error)) error {
	return change(c, r, func(context.Context) (none struct{}, err error) { return none, nil },
		func(ctx context.Context, tx pg.Tx, id ID, _ struct{}, match patch.Precondition) (T, error) {
			return act(ctx, tx, id, match)
		})
}

// change returns an error of prepare in the transaction. A missing resource takes precedence over it.
func change[ID, T, P any](
	c *gin.Context, r Collection[ID, T], prepare func(ctx context.Context) (P, error),
	use func(ctx context.Context, tx pg.Tx, id ID, p P, match patch.Precondition) (T, error),
) error {
	id, err := r.parse(c.Param("id"))
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	p, failed := prepare(ctx)
	res, err := r.write(ctx, http.StatusOK, func(ctx context.Context, tx pg.Tx) (T, error) {
		if failed == nil {
			return use(ctx, tx, id, p, httpx.IfMatch(c))
		}
		v, err := r.Load(ctx, tx, id)
		if err == nil {
			err = failed
		}
		return v, err
	})
	if err != nil {
		return r.otherMode(ctx, id, err)
	}
	return httpx.Send(c, res)
}

// Operate runs an operation on the resource with an id, and responds with the result.
func Operate[ID, T any](c *gin.Context, r Collection[ID, T], id ID, op operation.Operation[T]) error {
	res, err := r.operate(c.Request.Context(), http.StatusOK, op)
	if err != nil {
		return r.otherMode(c.Request.Context(), id, err)
	}
	return httpx.Send(c, res)
}

// OperateNew runs an operation that creates a resource.
func OperateNew[ID, T any](c *gin.Context, r Collection[ID, T], op operation.Operation[T]) error {
	res, err := r.operate(c.Request.Context(), http.StatusCreated, op)
	if err != nil {
		return err
	}
	return httpx.Send(c, res)
}

func (r Collection[ID, T]) operate(ctx context.Context, status int, op operation.Operation[T]) (idem.Response, error) {
	return operate(ctx, r.Idempotency, cmp.Or(r.MaxWait, operation.MaxWait), op, func(ctx context.Context, v T) (idem.Response, error) {
		return r.response(ctx, status, v)
	})
}

// operate runs an operation whose last transaction stores the response that render creates from its result.
func operate[T any](
	ctx context.Context, idempotency *idemstore.Store, maxWait time.Duration, op operation.Operation[T],
	render func(ctx context.Context, v T) (idem.Response, error),
) (res idem.Response, err error) {
	runner := operation.Runner{DB: idempotency.DB, Keys: idempotency}
	err = operation.Run(ctx, runner, maxWait, op, func(ctx context.Context, step func(ctx context.Context, tx pg.Tx) (T, error)) (err error) {
		res, err = idemstore.Run(ctx, idempotency, step, render)
		return err
	})
	return res, err
}

// Delete deletes the resource of the path in a transaction and responds without a body.
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
	return httpx.Send(c, idem.Response{Status: http.StatusNoContent})
}
