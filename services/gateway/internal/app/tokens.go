package app

import (
	"context"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// Tokens bounds the requests of operations without a credential, whose path holds a secret token instead. Each token has
// its own rate. A token that was not valid within the last hour waits for its turn like an unknown credential, and is
// counted only when it turns out to be valid, so that guessed tokens fill neither Redis nor the counters.
type Tokens struct {
	limit   domain.Limit
	unknown cache[[32]byte, struct{}]
	good    cache[[32]byte, struct{}]
	lookups *Lookups
}

// TokenOptions are the options of NewTokens.
type TokenOptions struct {
	Keep    time.Duration // how long it is cached that a token is unknown
	Size    int           // entries of each cache
	Lookups *Lookups      // limits the requests with tokens that were not valid recently
	Limit   domain.Limit  // of one token
}

// NewTokens makes empty caches.
func NewTokens(opt TokenOptions) *Tokens {
	return &Tokens{
		limit: opt.Limit, lookups: opt.Lookups,
		unknown: newCache[[32]byte, struct{}](opt.Size, opt.Keep, sinceWrite),
		good:    newCache[[32]byte, struct{}](opt.Size, goodFor, sinceWrite),
	}
}

// ForwardPublic sends a call whose path holds the token of that hash to the service of op, within the token's rate. An
// unknown token is ErrNoFeed.
func (p *Pipeline) ForwardPublic(ctx context.Context, op *contract.Operation, call *domain.Call, hash [32]byte) (domain.Answer, error) {
	t := p.Tokens
	if _, ok := t.unknown.get(hash); ok {
		return domain.Answer{}, domain.ErrNoFeed
	}
	if _, ok := t.good.get(hash); !ok {
		return p.forwardNew(ctx, op, call, hash)
	}
	if err := p.countToken(ctx, hash); err != nil {
		return domain.Answer{}, err
	}
	return p.forwardToken(ctx, op, call, hash)
}

// forwardNew forwards a call with a token that was not valid recently, then counts it.
func (p *Pipeline) forwardNew(ctx context.Context, op *contract.Operation, call *domain.Call, hash [32]byte) (domain.Answer, error) {
	if err := p.Tokens.lookups.Enter(call.Address); err != nil {
		p.Metrics.Limited.Inc()
		return domain.Answer{}, domain.ErrTokens
	}
	unknown := false
	defer func() { p.Tokens.lookups.Leave(unknown) }()
	a, err := p.forwardToken(ctx, op, call, hash)
	if unknown = err == nil && a.Status == http.StatusNotFound; err != nil || unknown {
		return a, err
	}
	return a, p.countToken(ctx, hash)
}

// forwardToken forwards a call, and notes whether its token is valid.
func (p *Pipeline) forwardToken(ctx context.Context, op *contract.Operation, call *domain.Call, hash [32]byte) (domain.Answer, error) {
	start := time.Now()
	a, err := p.Upstreams[op.Service].Do(ctx, call)
	obs.Since(ctx, "upstream_ms", start)
	switch {
	case err != nil:
	case a.Status == http.StatusNotFound:
		p.Tokens.good.drop(hash)
		p.Tokens.unknown.set(hash, struct{}{})
	case a.Status < http.StatusBadRequest:
		p.Tokens.good.set(hash, struct{}{})
	}
	return a, err
}

// countToken counts a request of the token over all gateways, or in this process while Redis is down. It returns ErrRate
// with the time to wait when the limit is used up.
func (p *Pipeline) countToken(ctx context.Context, hash [32]byte) error {
	name, limit := "token:"+hex.EncodeToString(hash[:]), p.Tokens.limit
	start := time.Now()
	reply, err := p.Redis.Evaluate(store.Request{Credential: name, Limit: limit})
	obs.Since(ctx, "redis_ms", start)
	rate, passed := limit.Rate(reply.Window, reply.Now), reply.Passed
	if err != nil {
		p.Metrics.Fallback.Inc()
		rate, passed = p.Local.Take(name, limit)
	} else {
		p.Local.Adopt(name, reply.Window, reply.Now)
	}
	if passed {
		return nil
	}
	p.Metrics.Limited.Inc()
	return domain.ErrRate.WithHeader("Retry-After", strconv.FormatInt(max(1, rate.RetryAfter), 10))
}
