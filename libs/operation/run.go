package operation

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"
)

// Operation is a write that calls another service, or the payment gateway, between two transactions. It keeps what one step
// hands to the next. A process may die anywhere: what is begun is resumed by the same request, or by a worker.
type Operation[T any] interface {
	// Name is the operation in the record of its key. It is known after Begin, to a worker before; "" for one that cannot be
	// resumed.
	Name() string
	// Begin notes what is to be called. begun is the operation that the same request has begun before, "" for none. done says
	// that nothing is to be called.
	Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error)
	// Call makes the call. A *RefusedError says that it had no effect; after any other error it may have had one.
	Call(ctx context.Context) error
	// Finish writes what has come of it. A *RefusedError ends the operation as one of Call does.
	Finish(ctx context.Context, tx pg.Tx) (T, error)
	// Release takes back what Begin has noted.
	Release(ctx context.Context, tx pg.Tx) error
}

// RefusedError reports that an operation has had no effect.
type RefusedError struct{ Err error }

// Error implements error.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap implements the interface of package errors.
func (r *RefusedError) Unwrap() error { return r.Err }

// Refused reports whether a service that was called has decided to do nothing. Where it says that such a request is still running,
// or came before with another body, it may have done something.
func Refused(err error) bool {
	var e *apperr.Error
	if !errors.As(err, &e) || errors.Is(err, apperr.ErrInProgress) || errors.Is(err, apperr.ErrMismatch) {
		return false
	}
	return e.Kind == apperr.Conflict || e.Kind == apperr.Invalid || e.Kind == apperr.NotFound || e.Kind == apperr.Forbidden
}

// Keys keeps the Idempotency-Keys of requests, and the operation that each has begun. *idemstore.Store implements it.
type Keys interface {
	// Claim keeps the request's key from being used by any other request, and says what the request has begun before, and
	// whether it was answered. Begin notes what it begins. Both do nothing without a key.
	Claim(ctx context.Context, tx pg.Tx) (operation string, responded bool, err error)
	Begin(ctx context.Context, tx pg.Tx, operation string)
	// Release takes the claim of a request back.
	Release(ctx context.Context, tx pg.Tx) error
	// Hold locks the key with which an operation was begun and keeps it from expiring; Free releases it.
	Hold(ctx context.Context, tx pg.Tx, operation string) error
	Free(ctx context.Context, tx pg.Tx, operation string) error
}

// Write runs a step in a transaction: that of a request stores the response too, and runs no step when the request was
// answered before.
type Write[T any] func(ctx context.Context, step func(ctx context.Context, tx pg.Tx) (T, error)) error

// Runner runs operations.
type Runner struct {
	DB   *pg.DB
	Keys Keys
}

// Run runs an operation of a request. It waits for another attempt for at most patience. The key is locked before any row, so
// that another request with the key is a mismatch before it has an effect.
func Run[T any](ctx context.Context, r Runner, patience time.Duration, op Operation[T], write Write[T]) error {
	return Retry(ctx, patience, func(ctx context.Context) error { return run(ctx, r, op, write) })
}

// Resume runs an operation that a process has left, as a worker does. That it is refused is an end too. One that another attempt
// has is left to it: the error is an UnderWay.
func Resume[T any](ctx context.Context, r Runner, op Operation[T]) error {
	err := run(ctx, r, op, func(ctx context.Context, step func(ctx context.Context, tx pg.Tx) (T, error)) error {
		return r.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := step(ctx, tx)
			return err
		})
	})
	var refused *RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

func run[T any](ctx context.Context, r Runner, op Operation[T], write Write[T]) error {
	done, responded, err := begin(ctx, r, op)
	if err != nil {
		return err
	}
	if responded {
		return write(ctx, func(context.Context, pg.Tx) (none T, err error) { return none, ErrUnderWay }) // unless it expires just now
	}
	if done {
		return write(ctx, op.Finish)
	}
	if err = op.Call(ctx); err == nil {
		err = write(ctx, op.Finish)
	}
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	if failed := release(context.WithoutCancel(ctx), r, op); failed != nil { // the client may have gone
		return failed
	}
	return err
}

func begin[T any](ctx context.Context, r Runner, op Operation[T]) (done, responded bool, err error) {
	err = r.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		begun, prior, err := r.Keys.Claim(ctx, tx)
		if err != nil || prior {
			responded = prior
			return err
		}
		if known := op.Name(); begun == "" && known != "" {
			if err := r.Keys.Hold(ctx, tx, known); err != nil {
				return err
			}
		}
		if done, err = op.Begin(ctx, tx, begun); err != nil || done {
			return err
		}
		if name := op.Name(); name != "" {
			r.Keys.Begin(ctx, tx, name)
		}
		return nil
	})
	return done, responded, err
}

func release[T any](ctx context.Context, r Runner, op Operation[T]) error {
	return r.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		name := op.Name()
		if name == "" {
			return errors.Join(op.Release(ctx, tx), r.Keys.Release(ctx, tx))
		}
		if err := r.Keys.Hold(ctx, tx, name); err != nil {
			return err
		}
		if err := op.Release(ctx, tx); err != nil {
			return err
		}
		return r.Keys.Free(ctx, tx, name)
	})
}
