package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"holdfast.dev/libs/apikey"

	"holdfast.dev/services/gateway/internal/domain"
)

// Credential is a principal as this process has cached it; it is never changed, only replaced.
type Credential struct {
	domain.Principal
	hash   [32]byte
	loaded time.Time
	marker string // Redis's memory marker and state that were seen before the principal was read
	state  string
}

// LookupFunc asks identity for the principal of a credential's hash: ErrInvalid when there is none.
type LookupFunc func(ctx context.Context, hash [32]byte) (domain.Principal, error)

// Principals finds what a credential stands for, and remembers it for a while.
type Principals struct {
	lookup   LookupFunc
	cache    cache[[32]byte, *Credential]
	unknown  cache[[32]byte, struct{}]
	flights  singleflight.Group
	guesses  *Counters
	failures domain.Limit
	metrics  *Metrics
}

// PrincipalOptions are the bounds of NewPrincipals.
type PrincipalOptions struct {
	Keep     time.Duration // how long a principal, or that there is none, is remembered
	Size     int           // entries of either cache
	Failures domain.Limit  // failed look-ups of one client address
}

// lookupTimeout bounds a look-up that several requests may wait for, so no single one's end may cancel it.
const lookupTimeout = 3 * time.Second

// NewPrincipals makes empty caches in front of lookup.
func NewPrincipals(lookup LookupFunc, opt PrincipalOptions, m *Metrics) *Principals {
	return &Principals{
		lookup: lookup, failures: opt.Failures, metrics: m, guesses: NewCounters(opt.Size),
		cache:   newCache[[32]byte, *Credential](opt.Size, opt.Keep, sinceWrite),
		unknown: newCache[[32]byte, struct{}](opt.Size, opt.Keep, sinceWrite),
	}
}

// Find returns the credential of a well-formed token: ErrInvalid when nobody knows it, ErrRevoked, or
// ErrGuessing when address has asked for too many that nobody knows.
func (p *Principals) Find(ctx context.Context, token, address string) (*Credential, error) {
	hash := apikey.Hash(token)
	if c, ok := p.cache.get(hash); ok {
		p.metrics.Principals.WithLabelValues("hit").Inc()
		return c.standing()
	}
	if _, ok := p.unknown.get(hash); ok {
		p.metrics.Principals.WithLabelValues("unknown").Inc()
		return nil, domain.ErrInvalid
	}
	p.metrics.Principals.WithLabelValues("miss").Inc()
	if rate := p.guesses.Peek(address, p.failures); rate.RetryAfter > 0 {
		return nil, domain.ErrGuessing.After(time.Duration(rate.RetryAfter) * time.Second)
	}
	c, err := p.load(ctx, hash, "", "")
	if errors.Is(err, domain.ErrInvalid) {
		p.guesses.Take(address, p.failures)
	}
	return c, err
}

// Reread looks c up again, because of the marker and the state that Redis has answered.
func (p *Principals) Reread(ctx context.Context, c *Credential, marker, state string) (*Credential, error) {
	p.metrics.Principals.WithLabelValues("reread").Inc()
	return p.load(ctx, c.hash, marker, state)
}

// Revoke remembers that c is revoked.
func (p *Principals) Revoke(c *Credential) {
	dead := *c
	dead.Revoked = true
	p.cache.set(c.hash, &dead)
}

func (p *Principals) age(c *Credential) time.Duration { return time.Since(c.loaded) }

func (c *Credential) standing() (*Credential, error) {
	if c.Revoked {
		return nil, domain.ErrRevoked
	}
	return c, nil
}

// load asks identity once for all who wait for the same. Requests that have seen another marker or state do
// not join: the look-up under way may have read before the change that they know of.
func (p *Principals) load(ctx context.Context, hash [32]byte, marker, state string) (*Credential, error) {
	v, err, _ := p.flights.Do(string(hash[:])+marker+"/"+state, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		began := time.Now()
		principal, err := p.lookup(ctx, hash)
		if errors.Is(err, domain.ErrInvalid) {
			p.cache.drop(hash)
			p.unknown.set(hash, struct{}{})
		}
		if err != nil {
			return nil, err
		}
		c := &Credential{Principal: principal, hash: hash, loaded: began, marker: marker, state: state}
		p.cache.set(hash, c)
		return c, nil
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // LookupFunc's
	}
	c, ok := v.(*Credential)
	if !ok {
		return nil, fmt.Errorf("look-up gave a %T", v)
	}
	return c.standing()
}
