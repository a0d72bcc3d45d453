package app

import (
	"context"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// Tokens limits the requests of operations without a credential, whose path contains a secret token instead. Each token has its own
// rate. A token that was not valid within the last hour waits in a queue like an unknown credential. It is counted only if it is
// valid, so that guessed tokens fill neither Redis nor the counters.
type Tokens struct {
	missing error
	limit   domain.Limit
	unknown cache[[32]byte, struct{}]
	good    cache[[32]byte, struct{}]
	lookups *Lookups
}

// TokenOptions are the options of NewTokens.
type TokenOptions struct {
	Missing error         // the response to an unknown token
	TTL     time.Duration // how long it is cached that a token is unknown
	Size    int           // entries of each cache
	Lookups *Lookups      // limits the requests with tokens that were not valid recently
	Limit   domain.Limit  // of one token
}

// NewTokens creates empty caches.
func NewTokens(opt TokenOptions) *Tokens {
	return &Tokens{
		missing: opt.Missing, limit: opt.Limit, lookups: opt.Lookups,
		unknown: newCache[[32]byte, struct{}](opt.Size, opt.TTL, sinceWrite),
		good:    newCache[[32]byte, struct{}](opt.Size, goodFor, sinceWrite),
	}
}

// Forward sends a call to a service, within the rate of the token in its path. hash is the hash of the token.
func (t *Tokens) Forward(ctx context.Context, p *Pipeline, service string, call *domain.Call, hash [32]byte) (domain.Response, error) {
	if _, ok := t.unknown.get(hash); ok {
		return domain.Response{}, t.missing
	}
	if _, ok := t.good.get(hash); !ok {
		return t.forwardNew(ctx, p, service, call, hash)
	}
	if err := t.count(ctx, p, hash); err != nil {
		return domain.Response{}, err
	}
	return t.forward(ctx, p, service, call, hash)
}

// forwardNew forwards a call with a token that was not valid recently, then counts it.
func (t *Tokens) forwardNew(ctx context.Context, p *Pipeline, service string, call *domain.Call, hash [32]byte) (domain.Response, error) {
	if err := t.lookups.Enter(call.Address); err != nil {
		p.Metrics.Limited.Inc()
		return domain.Response{}, domain.ErrTokens
	}
	refused := false
	defer func() { t.lookups.Leave(refused) }()
	a, err := t.forward(ctx, p, service, call, hash)
	if refused = err == nil && a.Status >= http.StatusBadRequest && a.Status < http.StatusInternalServerError && a.Status != http.StatusForbidden; err != nil || refused {
		return a, err
	}
	return a, t.count(ctx, p, hash)
}

// forward forwards a call, and stores whether its token is valid.
func (t *Tokens) forward(ctx context.Context, p *Pipeline, service string, call *domain.Call, hash [32]byte) (domain.Response, error) {
	start := time.Now()
	a, err := p.Upstreams[service].Do(ctx, call)
	obs.Since(ctx, "upstream_ms", start)
	switch {
	case err != nil:
	case a.Status == http.StatusNotFound:
		t.good.drop(hash)
		t.unknown.set(hash, struct{}{})
	case a.Status < http.StatusBadRequest:
		t.good.set(hash, struct{}{})
	}
	return a, err
}

// count counts a request of the token.
func (t *Tokens) count(ctx context.Context, p *Pipeline, hash [32]byte) error {
	return p.Count(ctx, "token:"+hex.EncodeToString(hash[:]), t.limit)
}

// Count counts a request without a credential under a name, across all gateways, or in this process while Redis is down. It returns
// ErrRate with the time to wait if the limit is reached.
func (p *Pipeline) Count(ctx context.Context, name string, limit domain.Limit) error {
	rate, rejected := p.Local.Reject(name, limit)
	if !rejected || !p.unchecked(store.Holder{Credential: name}) {
		if rate, rejected = p.evaluate(ctx, name, limit); !rejected {
			return nil
		}
	}
	p.Metrics.Limited.Inc()
	return domain.ErrRate.WithHeader("Retry-After", strconv.FormatInt(max(1, rate.RetryAfter), 10))
}

// evaluate counts a request in Redis, or in this process while Redis is down, and reports whether the limit rejects it.
func (p *Pipeline) evaluate(ctx context.Context, name string, limit domain.Limit) (domain.Rate, bool) {
	start := time.Now()
	result, err := p.Redis.Evaluate(store.Request{Holder: store.Holder{Credential: name}, Limits: domain.Limits{Credential: limit}})
	obs.Since(ctx, "redis_ms", start)
	if err != nil {
		p.Metrics.Fallback.Inc()
		rate, passed := p.Local.Take(name, limit)
		return rate, !passed
	}
	p.Local.Adopt(name, result.Windows.Credential, result.Now)
	return limit.Rate(result.Windows.Credential, result.Now), !result.Passed
}
