package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// watchInterval is how often the credential of an open stream or download is checked, so that the response ends within about a second
// after the credential has.
const watchInterval = time.Second

// watch cancels ctx with the cause domain.ErrEnded when c has ended, has lost a scope, or its tenant is suspended. A check that
// fails because Redis and identity do not respond is repeated for up to maxBlind.
func (p *Pipeline) watch(ctx context.Context, c *Credential, cancel context.CancelCauseFunc) {
	scopes, confirmed := c.Caller.Scopes, time.Now()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := p.recheck(ctx, c)
		if err == nil {
			c, confirmed = now, time.Now()
			if err = c.Active(false); err == nil {
				err = c.Allows(scopes)
			}
		} else if !endedCredential(err) && time.Since(confirmed) < maxBlind {
			continue
		}
		if err != nil {
			obs.Add(ctx, slog.String("ended", err.Error()))
			cancel(fmt.Errorf("%w: %w", domain.ErrEnded, err))
			return
		}
	}
}

func endedCredential(err error) bool {
	return errors.Is(err, domain.ErrInvalid) || errors.Is(err, domain.ErrRevoked) || errors.Is(err, domain.ErrExpired)
}

// recheck returns the current state of c without counting a request. It is as recent as that of a request.
func (p *Pipeline) recheck(ctx context.Context, c *Credential) (*Credential, error) {
	c, err := p.Principals.Again(ctx, c)
	if err != nil {
		return nil, err
	}
	result, err := p.Redis.Evaluate(store.Request{Holder: holder(&c.Caller), Limits: p.Limits.Uncounted()})
	if err == nil {
		return p.current(ctx, c, &result, p.Principals.Reread)
	}
	if !errors.Is(err, store.ErrDown) {
		return nil, err
	}
	if p.outOfReach(c) {
		return p.Principals.Reread(ctx, c, c.marker, c.state)
	}
	return c, nil
}
