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

// ErrUnderWay is an UnderWay with the default error.
var ErrUnderWay = &UnderWay{Err: apperr.ErrInProgress}

const (
	// Patience is how long a request waits for another attempt, unless its service specifies another duration.
	Patience = 5 * time.Second
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
// It returns the Err of an UnderWay that lasts longer than patience. It returns apperr.ErrUnavailable if a transaction repeatedly
// needs more data.
func Retry(ctx context.Context, patience time.Duration, do func(ctx context.Context) error) error {
	for until, again := time.Now().Add(patience), 0; ; {
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
