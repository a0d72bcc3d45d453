// Package app processes requests: it finds the credential, checks the rate limit, and looks for a cached response. Otherwise it
// forwards the request to the service.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// Upstream sends a call to one service. Its errors are *apperr.Error. A response of any status is not an error. Stream forwards the
// response while it arrives. If it fails, it has written nothing.
type Upstream interface {
	Do(ctx context.Context, call *domain.Call) (domain.Response, error)
	Stream(ctx context.Context, w http.ResponseWriter, call *domain.Call) error
}

// Pipeline contains what the checks of a request use. All fields are required.
type Pipeline struct {
	Principals *Principals
	Origins    *Origins
	Redis      *store.Redis
	Local      *Counters           // used while Redis is down
	Limits     domain.Limits       // of tenants without their own
	Tokens     *Tokens             // of calendars
	Browsers   domain.Limit        // for requests of one network to the pages and OAuth endpoints of a service
	Accounts   *Tokens             // for payment gateways' events, by account and address of the sender
	Upstreams  map[string]Upstream // by x-service
	Streams    *Streams            // of events
	Downloads  *Streams            // lists as CSV and exports
	Assistants *Assistants
	Bodies     *Bodies
	Requests   *RequestLogs
	Counts     *RequestCounts
	Metrics    *Metrics
}

const (
	// maxStale is the maximum age of a cached principal while no revocations can arrive.
	maxStale = time.Second
	// grace is how long Redis must be down before principals are read again. After a single time-out of Redis, the gateway does not
	// look up every credential in identity. It is at most maxStale, so it does not delay a revocation further.
	grace = time.Second
	// maxBlind is the maximum age while identity does not respond either.
	maxBlind = 30 * time.Second
)

// Verdict is the result of Admit. Credential may be newer than the given one.
type Verdict struct {
	Credential *Credential
	Rates      domain.Rates
	Passed     bool   // false: over a limit and not counted
	Response   []byte // the cached response of the key
}

// Limit returns the name of the limit that rejected the request, and domain.LimitDefault if it passed.
func (v *Verdict) Limit() string {
	if v.Passed {
		return domain.LimitDefault
	}
	return v.Rates.Name()
}

// Refusal returns the 429 of a request that was over a limit, with the time to wait.
func (v *Verdict) Refusal() error {
	err := domain.ErrRate
	switch v.Limit() {
	case domain.LimitTenant:
		err = domain.ErrTenantRate
	case domain.LimitApps:
		err = domain.ErrAppsRate
	}
	return err.WithHeader("Retry-After", strconv.FormatInt(max(1, v.Rates.RetryAfter()), 10))
}

func holder(c *caller.Caller) store.Holder {
	return store.Holder{Tenant: c.Tenant.String(), Mode: string(c.Mode), Credential: c.Credential}
}

// Admit counts a request of c and, if key is not empty, looks up the key's cached response, in one round trip. It rejects most requests
// of a flood without it, and looks up a stale credential only if Redis does not reject the request, or once in a checkPeriod. While Redis
// is down, it counts in this process. It fails if the credential was revoked, or if that cannot be determined.
func (p *Pipeline) Admit(ctx context.Context, c *Credential, key string) (Verdict, error) {
	start := time.Now()
	limits, from := p.Limits.For(c.Limits, c.Caller.Kind), holder(&c.Caller)
	if rates, rejected := p.Local.RejectAny(from, limits); rejected && p.unchecked(from) {
		return Verdict{Credential: c, Rates: rates}, nil
	}
	result, err := p.Redis.Evaluate(store.Request{Holder: from, Limits: limits, Key: key})
	obs.Since(ctx, "redis_ms", start)
	before := c
	if c.stale && (err != nil || result.Passed || p.Local.CanLookUp(from)) {
		fresh, failed := p.Principals.reload(ctx, c)
		if failed != nil {
			return Verdict{}, failed
		}
		c = fresh
	}
	if err != nil {
		return p.admitLocally(ctx, c, err)
	}
	p.Local.AdoptAll(from, limits, result.Windows, result.Now)
	again := p.refresh
	if !result.Passed {
		again = withoutReread
	}
	if c, err = p.current(ctx, c, &result, again); err != nil {
		return Verdict{}, err
	}
	if c.Limits != before.Limits && !result.Passed { // it was not counted, and new limits may allow it
		return p.Admit(ctx, c, key)
	}
	return Verdict{Credential: c, Rates: limits.Rates(result.Windows, result.Now), Passed: result.Passed, Response: result.Response}, nil
}

type rereadFunc func(ctx context.Context, c *Credential, marker, state string) (*Credential, error)

// withoutReread is a rereadFunc that reads nothing.
func withoutReread(_ context.Context, c *Credential, _, _ string) (*Credential, error) { return c, nil }

// current returns c as it is after Redis's result. It calls lost if Redis may have lost a revocation.
func (p *Pipeline) current(ctx context.Context, c *Credential, r *store.Result, lost rereadFunc) (*Credential, error) {
	switch {
	case r.State == store.Revoked:
		p.Principals.Revoke(c)
		return nil, domain.ErrRevoked
	case outdated(c, r):
		return p.Principals.Reread(ctx, c, r.Marker, r.State)
	case r.Marker != c.marker && p.Principals.age(c) > maxStale:
		return lost(ctx, c, r.Marker, r.State)
	}
	return c, nil
}

// outOfReach reports whether no revocation of c can have arrived since it was read, because Redis is down.
func (p *Pipeline) outOfReach(c *Credential) bool {
	return p.Redis.DownFor(holder(&c.Caller)) > grace && p.Principals.age(c) > maxStale
}

// unchecked counts a request that is rejected without asking Redis. It returns false while Redis is down, because such requests are counted as
// limited in this process.
func (p *Pipeline) unchecked(h store.Holder) bool {
	if p.Redis.DownFor(h) > 0 {
		return false
	}
	p.Metrics.Unchecked.Inc()
	return true
}

// outdated reports whether identity wrote a later version of c.
func outdated(c *Credential, r *store.Result) bool {
	if r.State == "" || r.State == c.state {
		return false
	}
	v, err := strconv.ParseInt(r.State, 10, 64)
	return err == nil && v > c.Version
}

// refresh reads c again, because a revocation may have been lost while Redis was down or when it lost its data. A credential is
// read once for each marker and state, so that one wrong entry does not cause a lookup per request. If identity does not respond
// either, the request continues with the cached principal unless it is too old.
func (p *Pipeline) refresh(ctx context.Context, c *Credential, marker, state string) (*Credential, error) {
	fresh, err := p.Principals.Reread(ctx, c, marker, state)
	if err == nil || endedCredential(err) || p.Principals.age(c) > maxBlind {
		return fresh, err
	}
	obs.Add(ctx, slog.String("principal", "stale"))
	return c, nil
}

// admitLocally decides without Redis.
func (p *Pipeline) admitLocally(ctx context.Context, c *Credential, cause error) (Verdict, error) {
	p.Metrics.Fallback.Inc()
	obs.Add(ctx, slog.String("limiter", "local"))
	if !errors.Is(cause, store.ErrDown) {
		return Verdict{}, cause
	}
	if p.outOfReach(c) {
		var err error
		if c, err = p.refresh(ctx, c, c.marker, c.state); err != nil {
			return Verdict{}, err
		}
	}
	rates, passed := p.Local.TakeAll(holder(&c.Caller), p.Limits.For(c.Limits, c.Caller.Kind))
	return Verdict{Credential: c, Rates: rates, Passed: passed}, nil
}

// Replay decodes the cached response of a request's key. It returns ErrMismatch if the response belongs to another request, and nil
// if only the service can decide.
func (p *Pipeline) Replay(raw []byte, service string, fingerprint [32]byte) (*domain.Response, error) {
	if raw == nil {
		return nil, nil
	}
	known, err := domain.Decode(raw, fingerprint)
	switch {
	case err != nil || known.Service == service:
		return nil, nil
	case !known.Same:
		return nil, apperr.ErrMismatch
	default:
		return &known.Response, nil
	}
}

// Forward sends a call to the service of op, and caches the response to a write with a key: the whole response if allowed,
// otherwise a placeholder.
func (p *Pipeline) Forward(ctx context.Context, op *contract.Operation, call *domain.Call, fingerprint [32]byte) (domain.Response, error) {
	start := time.Now()
	a, err := p.Upstreams[op.Service].Do(ctx, call)
	obs.Since(ctx, "upstream_ms", start)
	if err != nil {
		return a, err
	}
	if call.Key == "" || a.Status/100 != 2 || a.RecordExpiresAt.IsZero() {
		return a, nil
	}
	var value []byte
	if a.Private || !op.Cacheable() {
		value, err = domain.Placeholder(op.Service)
	} else {
		value, err = a.Encode(fingerprint)
	}
	if err != nil {
		return a, err
	}
	p.Redis.CacheResponse(holder(&call.Caller), call.Key, value, a.RecordExpiresAt)
	return a, nil
}
