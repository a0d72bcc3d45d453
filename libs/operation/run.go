// Package operation supports writes that call other services. Run and Resume run the steps for requests and for workers. Retry
// repeats a transaction that needs more data or waits for another attempt. Workers processes due rows. Meter measures unfinished
// work.
package operation

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"
)

// Operation is a write that calls another service or the payment gateway between two transactions. It holds the values that one step
// passes to the next. If the process crashes, a repeated request or a worker resumes the operation.
type Operation[T any] interface {
	// Name identifies the operation in the record of its key. A request knows it after Begin, a worker already before Begin. It is
	// "" if the operation cannot be resumed.
	Name() string
	// Begin stores what Call will do. begun is the name of the operation that an earlier attempt of the request began, or "". If
	// done is true, Call is skipped.
	Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error)
	// Call calls the service. A *RefusedError means that the call had no effect; after any other error, it may have had one.
	Call(ctx context.Context) error
	// Finish writes the result of the call. A *RefusedError ends the operation, as it does for Call.
	Finish(ctx context.Context, tx pg.Tx) (T, error)
	// Release removes what Begin stored.
	Release(ctx context.Context, tx pg.Tx) error
}

// RefusedError reports that an operation had no effect.
type RefusedError struct{ Err error }

// Error implements error.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap implements the interface of package errors.
func (r *RefusedError) Unwrap() error { return r.Err }

// Refused reports whether the error of a service means that the call had no effect. An error that reports a running request with the
// same key, or an earlier one with another body, does not: that request may have had an effect.
func Refused(err error) bool {
	var e *apperr.Error
	if !errors.As(err, &e) || errors.Is(err, apperr.ErrInProgress) || errors.Is(err, apperr.ErrMismatch) {
		return false
	}
	return e.Kind == apperr.Conflict || e.Kind == apperr.Invalid || e.Kind == apperr.NotFound || e.Kind == apperr.Forbidden
}

// Keys stores the Idempotency-Keys of requests and the operation that each request began. *idemstore.Store implements it.
type Keys interface {
	// Claim reserves the key for the request. It returns the operation that an earlier attempt began, and whether that attempt has a
	// response. Begin stores the operation that the request begins. Both do nothing if the request has no key.
	Claim(ctx context.Context, tx pg.Tx) (operation string, responded bool, err error)
	Begin(ctx context.Context, tx pg.Tx, operation string)
	// Release removes the claim of a request.
	Release(ctx context.Context, tx pg.Tx) error
	// Hold locks the key of an operation and prevents its expiry. Free ends that.
	Hold(ctx context.Context, tx pg.Tx, operation string) error
	Free(ctx context.Context, tx pg.Tx, operation string) error
}

// Write runs a step in a transaction. For a request, it also stores the response, and it skips the step if a response is already stored.
type Write[T any] func(ctx context.Context, step func(ctx context.Context, tx pg.Tx) (T, error)) error

// Runner runs operations.
type Runner struct {
	DB   *pg.DB
	Keys Keys
}

// Run runs an operation of a request. If another attempt is running, Run waits for at most maxWait. Run locks the key before any
// row, so a different request with the same key fails before it has an effect.
func Run[T any](ctx context.Context, r Runner, maxWait time.Duration, op Operation[T], write Write[T]) error {
	return Retry(ctx, maxWait, func(ctx context.Context) error { return run(ctx, r, op, write) })
}

// Resume completes an interrupted operation, for a worker. It returns nil if the operation is refused, and an UnderWay if another
// attempt is running.
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
	if failed := release(context.WithoutCancel(ctx), r, op); failed != nil { // the client may have disconnected
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

// ErrUnderWay is an UnderWay with the default error.
var ErrUnderWay = &UnderWay{Err: apperr.ErrInProgress}

const (
	// MaxWait is how long a request waits for another attempt, unless its service specifies another duration.
	MaxWait = 5 * time.Second
	// pollEvery is how often it checks whether that attempt ended.
	pollEvery = 50 * time.Millisecond
	// maxAgain is how often a transaction is repeated because it needs more data.
	maxAgain = 6
)

// UnderWay reports that another request, or a worker, holds the data that the transaction would change.
type UnderWay struct {
	Err *apperr.Error // returned when it takes too long
}

// Error implements error.
func (u *UnderWay) Error() string { return u.Err.Error() }

// Again is the error of a transaction that needs more data. Fetch runs outside of the transaction, which is then repeated.
type Again struct {
	// Fetch may be nil.
	Fetch func(ctx context.Context) error
	// Why is the reason, for the log.
	Why string
}

// Error implements error.
func (a *Again) Error() string { return a.Why }

// Retry runs do, and repeats it if its error requires that: after the Fetch of an Again, and until no other attempt is in progress.
// It returns the Err of an UnderWay that lasts longer than maxWait. It returns apperr.ErrUnavailable if a transaction repeatedly
// needs more data.
func Retry(ctx context.Context, maxWait time.Duration, do func(ctx context.Context) error) error {
	for until, again := time.Now().Add(maxWait), 0; ; {
		err := do(ctx)
		var lacks *Again
		var busy *UnderWay
		switch {
		case errors.As(err, &lacks):
			if again++; again == maxAgain {
				return apperr.ErrUnavailable.WithCause(errors.New(lacks.Why)) // not an Again, so that an outer Retry does not repeat it
			}
			if lacks.Fetch == nil {
				continue
			}
			if err := lacks.Fetch(ctx); err != nil {
				return err
			}
		case !errors.As(err, &busy):
			return err
		case time.Now().After(until):
			return busy.Err
		default:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollEvery):
			}
		}
	}
}

// RetryTx is Retry for a transaction of db that does not wait for other attempts.
func RetryTx(ctx context.Context, db *pg.DB, do func(ctx context.Context, tx pg.Tx) error) error {
	return Retry(ctx, 0, func(ctx context.Context) error { return db.Tx(ctx, do) })
}
