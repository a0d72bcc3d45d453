// Package operation contains what a write needs that calls other services: Run and Resume run its steps for requests and for
// workers, Retry repeats a transaction that lacks something or waits for another attempt, Workers finds what is due, and Meter measures
// what is not finished.
package operation

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"
)

// ErrUnderWay is an UnderWay without a text of its own.
var ErrUnderWay = &UnderWay{Err: apperr.ErrInProgress}

const (
	// Patience is how long a request waits for another attempt, unless its service says otherwise.
	Patience = 5 * time.Second
	// pollEvery is how often it looks whether that has ended.
	pollEvery = 50 * time.Millisecond
	// maxAgain is how often a transaction is run again because it lacks something.
	maxAgain = 6
)

// UnderWay reports that another request, or a worker, holds what the transaction would change.
type UnderWay struct {
	Err *apperr.Error // when it takes too long
}

// Error implements error.
func (u *UnderWay) Error() string { return u.Err.Error() }

// Again is the error of a transaction that lacks something. The transaction is run again after Fetch, which runs outside of it.
type Again struct {
	// Fetch may be nil.
	Fetch func(ctx context.Context) error
	// Why is for the log.
	Why string
}

// Error implements error.
func (a *Again) Error() string { return a.Why }

// Retry runs do, and runs it again when its error requires it: after the Fetch of an Again, and until no other attempt is in
// progress. It returns the Err of an UnderWay that takes longer than patience. It returns apperr.ErrUnavailable when a
// transaction lacks something repeatedly.
func Retry(ctx context.Context, patience time.Duration, do func(ctx context.Context) error) error {
	for until, again := time.Now().Add(patience), 0; ; {
		err := do(ctx)
		var lacks *Again
		var busy *UnderWay
		switch {
		case errors.As(err, &lacks):
			if again++; again == maxAgain {
				return apperr.ErrUnavailable.WithCause(errors.New(lacks.Why)) // no Again: a Retry around this one does not repeat it
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

// RetryTx is Retry of a transaction of db, which waits for no other attempt.
func RetryTx(ctx context.Context, db *pg.DB, do func(ctx context.Context, tx pg.Tx) error) error {
	return Retry(ctx, 0, func(ctx context.Context) error { return db.Tx(ctx, do) })
}
