package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/console/internal/domain"
)

// Time limits of a submitted form for all its attempts, and for the first one. The gateway waits 30 seconds for the console.
const (
	submitTime = 26 * time.Second
	firstTime  = 20 * time.Second
)

// submitPauses are the pauses before a write with an unknown outcome is sent again.
var submitPauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond}

// Submit makes a call that changes something. While its outcome is unknown, it sends the same request again with the same
// Idempotency-Key, a few times. A service that has completed the request returns its stored response, and Submit waits for one
// that is still processing it. After an error for which Unknown is true, the call might have taken effect.
func (a *App) Submit(ctx context.Context, in domain.Request) (domain.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, submitTime)
	defer cancel()
	o, err := a.first(ctx, in)
	pauses := a.Pauses
	if pauses == nil {
		pauses = submitPauses
	}
	for _, pause := range pauses {
		if !Unknown(err) || in.Key == "" {
			return o, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
		var later error
		o, later = a.Do(ctx, in)
		if a.gone(in, later) {
			return nil, nil
		}
		if !beforeTheKey(later) {
			err = later
		}
	}
	return o, err
}

func (a *App) first(ctx context.Context, in domain.Request) (domain.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	return a.Do(ctx, in)
}

// gone reports whether a repeated deletion finds nothing because an earlier attempt deleted it.
func (a *App) gone(in domain.Request, err error) bool {
	var e *apperr.Error
	return a.Services.Operations[in.Operation].Deletes() && errors.As(err, &e) && e.Kind == apperr.NotFound
}

// beforeTheKey reports whether a repetition was refused before its key was looked up. Such a refusal does not reveal the outcome
// of the earlier attempt.
func beforeTheKey(err error) bool {
	var e *apperr.Error
	return errors.As(err, &e) && e.Kind == apperr.Forbidden
}

// Unknown reports whether the call might have taken effect, or might still take effect, despite the error. A definite refusal
// means that nothing happened.
func Unknown(err error) bool {
	if err == nil {
		return false
	}
	var e *apperr.Error
	if !errors.As(err, &e) {
		return true
	}
	// The key is looked up after the rate limit check, so "too fast" does not reveal the outcome of an earlier attempt.
	open := []apperr.Kind{apperr.Internal, apperr.BadGateway, apperr.Unavailable, apperr.Timeout, apperr.RateLimited}
	return slices.Contains(open, e.Kind) || errors.Is(err, apperr.ErrInProgress)
}
