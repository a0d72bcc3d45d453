package operation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/operation"
)

var errBoom = errors.New("boom")

// Retry waits for a running attempt until it ends or maxWait has passed.
func TestRetryWaits(t *testing.T) {
	t.Parallel()
	busy := &operation.UnderWay{Err: apperr.ErrInProgress.WithMessage("Busy.")}
	for name, tc := range map[string]struct {
		ends time.Duration // time until the other attempt ends
		then error
		want error
		took time.Duration
	}{
		"at once":           {0, nil, nil, 0},
		"with an error":     {0, errBoom, errBoom, 0},
		"after a while":     {time.Second, nil, nil, time.Second},
		"with an error too": {time.Second, errBoom, errBoom, time.Second},
		"too late":          {time.Minute, nil, busy.Err, 5*time.Second + 50*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := operation.Retry(t.Context(), 5*time.Second, func(context.Context) error {
					if time.Since(begun) < tc.ends {
						return busy
					}
					return tc.then
				})
				if took := time.Since(begun); !errors.Is(err, tc.want) || took != tc.took {
					t.Errorf("%v after %s, want %v after %s", err, took, tc.want, tc.took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := operation.Retry(ctx, time.Hour, func(context.Context) error { return busy })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the client has gone: %v", err)
		}
	})
}

// A transaction that needs more data is repeated after the data is fetched, but not endlessly.
func TestRetryFetches(t *testing.T) {
	t.Parallel()
	runs, fetched := 0, 0
	lacks := &operation.Again{Why: "lacks something", Fetch: func(context.Context) error { fetched++; return nil }}
	do := func(context.Context) error {
		if runs++; fetched < 2 {
			return lacks
		}
		return errBoom
	}
	if err := operation.Retry(t.Context(), 0, do); !errors.Is(err, errBoom) || runs != 3 || fetched != 2 {
		t.Errorf("%v after %d runs and %d fetches", err, runs, fetched)
	}
	runs = 0
	err := operation.Retry(t.Context(), 0, func(context.Context) error { runs++; return &operation.Again{Why: "moved"} })
	if !errors.Is(err, apperr.ErrUnavailable) || runs != 6 {
		t.Errorf("always lacks something: %v after %d runs", err, runs)
	}
	runs = 0
	err = operation.Retry(t.Context(), 0, func(ctx context.Context) error {
		return operation.Retry(ctx, 0, func(context.Context) error { runs++; return &operation.Again{Why: "moved"} })
	})
	if !errors.Is(err, apperr.ErrUnavailable) || runs != 6 {
		t.Errorf("one within another: %v after %d runs", err, runs)
	}
	failing := &operation.Again{Why: "lacks something", Fetch: func(context.Context) error { return errBoom }}
	runs = 0
	if err := operation.Retry(t.Context(), 0, func(context.Context) error { runs++; return failing }); !errors.Is(err, errBoom) || runs != 1 {
		t.Errorf("cannot be fetched: %v after %d runs", err, runs)
	}
}

// An error of a called service is a refusal only if it is permanent.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		apperr.New(apperr.Conflict, "slot_unavailable", "Taken."), apperr.Field("x", "Is wrong."), apperr.New(apperr.NotFound, "a_not_found", "No."),
		apperr.New(apperr.Forbidden, "b", "No."),
	} {
		if !operation.Refused(err) {
			t.Errorf("%v is a refusal", err)
		}
	}
	for _, err := range []error{nil, errBoom, apperr.ErrInProgress, apperr.ErrMismatch, apperr.ErrUnavailable, context.Canceled} {
		if operation.Refused(err) {
			t.Errorf("%v leaves it open", err)
		}
	}
}
