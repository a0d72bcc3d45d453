package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/quota"

	"holdfast.dev/services/gateway/internal/domain"
)

// Credential is a cached principal. It is never changed, only replaced.
type Credential struct {
	domain.Principal
	hash   [32]byte
	loaded time.Time
	marker string // Redis's marker and state when the principal was read
	state  string
	stale  bool // too old: Admit only uses it to reject a request over a limit
}

// LookupFunc requests a principal from identity, by the hash and the kind of its credential. It returns ErrInvalid if there is
// none.
type LookupFunc func(ctx context.Context, hash [32]byte, kind string) (domain.Principal, error)

// Principals finds the principal of a credential, and caches it.
type Principals struct {
	lookup  LookupFunc
	cache   cache[[32]byte, *Credential]
	unknown cache[[32]byte, struct{}]
	good    cache[[32]byte, *Credential] // credentials that were valid recently: their lookups wait only for others of their tenant
	local   *Counters
	limits  domain.Limits
	flights singleflight.Group
	lookups *Lookups
	reloads *quota.Places // lookups of good credentials
	metrics *Metrics
}

// PrincipalOptions are the options of NewPrincipals.
type PrincipalOptions struct {
	TTL     time.Duration // how long a result is cached, including that there is no principal
	Size    int           // entries of each cache
	Lookups *Lookups      // limits lookups of credentials that were not valid recently

	Local  *Counters     // of Pipeline, like the next one
	Limits domain.Limits // of tenants without their own
}

// Lookups of credentials that were valid recently, at the same time: of all tenants, and of one, which can have thousands of keys that
// become too old in the same second.
const (
	repeatedLookups = 64
	lookupsOfTenant = 4
)

// lookupTimeout limits a lookup. Several requests can wait for it, so the end of one request does not cancel it.
const lookupTimeout = 3 * time.Second

// goodFor is how long lookups of a valid credential do not wait for those of other tenants.
const goodFor = time.Hour

// NewPrincipals creates empty caches in front of lookup.
func NewPrincipals(lookup LookupFunc, opt PrincipalOptions, m *Metrics) *Principals {
	return &Principals{
		lookup: lookup, lookups: opt.Lookups, metrics: m, local: opt.Local, limits: opt.Limits, reloads: quota.NewPlaces(repeatedLookups, lookupsOfTenant),
		cache:   newCache[[32]byte, *Credential](opt.Size, opt.TTL, sinceWrite),
		unknown: newCache[[32]byte, struct{}](opt.Size, opt.TTL, sinceWrite),
		good:    newCache[[32]byte, *Credential](opt.Size, goodFor, sinceWrite),
	}
}

// Find returns the credential of a well-formed token. It returns ErrInvalid if no credential has the token, and ErrGuessing if
// there are too many unknown tokens to look this one up. A credential that was valid recently never gets ErrGuessing. With
// ErrRevoked and ErrExpired, Find also returns the credential. While the window of a tenant is full, its credentials are not looked
// up when they become too old. Admit looks them up if it does not reject the request.
func (p *Principals) Find(ctx context.Context, token, address string) (*Credential, error) {
	hash, kind := apikey.Hash(token), domain.KindOf(token)
	if c, ok := p.cache.get(hash); ok {
		p.metrics.Principals.WithLabelValues("hit").Inc()
		return c.standing()
	}
	if _, ok := p.unknown.get(hash); ok {
		p.metrics.Principals.WithLabelValues("unknown").Inc()
		return nil, domain.ErrInvalid
	}
	known, ok := p.good.get(hash)
	if ok && p.local.Full(holder(&known.Caller), p.limits.For(known.Limits, known.Caller.Kind)) {
		p.metrics.Principals.WithLabelValues("full").Inc()
		stale := *known
		stale.stale = true
		return stale.standing()
	}
	p.metrics.Principals.WithLabelValues("miss").Inc()
	if ok {
		return p.reload(ctx, known)
	}
	return p.once(hash, func() (*Credential, error) { return p.loadLimited(ctx, hash, kind, address) })
}

// Again returns the cached credential, or looks it up if its time in the cache is over.
func (p *Principals) Again(ctx context.Context, c *Credential) (*Credential, error) {
	if cached, ok := p.cache.get(c.hash); ok {
		return cached.standing()
	}
	if _, ok := p.unknown.get(c.hash); ok {
		return nil, domain.ErrInvalid
	}
	return p.reload(ctx, c)
}

// reload looks up a credential that was valid recently.
func (p *Principals) reload(ctx context.Context, c *Credential) (*Credential, error) {
	return p.once(c.hash, func() (*Credential, error) { return p.loadAgain(ctx, c, "", "") })
}

// loadAgain loads a known credential when fewer than lookupsOfTenant of its tenant are being loaded.
func (p *Principals) loadAgain(ctx context.Context, c *Credential, marker, state string) (*Credential, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	tenant := c.Caller.Tenant.String()
	if err := p.reloads.Acquire(ctx, tenant); err != nil {
		return nil, apperr.ErrTimeout.WithCause(fmt.Errorf("wait for a look-up: %w", err))
	}
	defer p.reloads.Release(tenant)
	return p.load(ctx, c.hash, c.Caller.Kind, marker, state)
}

// loadLimited loads a credential that was not valid recently, within the limits of Lookups.
func (p *Principals) loadLimited(ctx context.Context, hash [32]byte, kind, address string) (c *Credential, err error) {
	if err := p.lookups.Enter(address); err != nil {
		p.metrics.Principals.WithLabelValues("refused").Inc()
		return nil, err
	}
	defer func() { p.lookups.Leave(errors.Is(err, domain.ErrInvalid)) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	return p.load(ctx, hash, kind, "", "")
}

// Reread looks up c again, because of the marker and the state that Redis returned. Only requests with the same marker and state
// share a lookup, because another lookup may have read before the change that these indicate.
func (p *Principals) Reread(ctx context.Context, c *Credential, marker, state string) (*Credential, error) {
	p.metrics.Principals.WithLabelValues("reread").Inc()
	return p.once(c.hash, func() (*Credential, error) { return p.loadAgain(ctx, c, marker, state) }, marker, "/", state)
}

// Revoke caches that c is revoked.
func (p *Principals) Revoke(c *Credential) {
	dead := *c
	dead.Revoked = true
	p.cache.set(c.hash, &dead)
	p.good.set(c.hash, &dead)
}

func (p *Principals) age(c *Credential) time.Duration { return time.Since(c.loaded) }

func (c *Credential) standing() (*Credential, error) {
	switch {
	case c.Revoked:
		return c, domain.ErrRevoked
	case c.Expires.IsZero() || time.Now().Before(c.Expires):
		return c, nil
	case c.Caller.Kind == domain.KindKey && c.ExpirySet:
		return c, domain.ErrExpired.WithMessage("The API key expired at %s. Create another one.", c.Expires.UTC().Format(time.RFC3339))
	case c.Caller.Kind == domain.KindKey: // a rotated key, which cannot be refreshed
		return c, domain.ErrRevoked
	}
	return c, domain.ErrExpired
}

// once runs load once for all requests that wait for the same hash and received the same state.
func (p *Principals) once(hash [32]byte, load func() (*Credential, error), seen ...string) (*Credential, error) {
	v, err, _ := p.flights.Do(string(hash[:])+strings.Join(seen, ""), func() (any, error) { return load() })
	if err != nil {
		return nil, err
	}
	c, ok := v.(*Credential)
	if !ok {
		return nil, fmt.Errorf("look-up returned a %T", v)
	}
	return c.standing()
}

// load requests the principal from identity and caches the result.
func (p *Principals) load(ctx context.Context, hash [32]byte, kind, marker, state string) (*Credential, error) {
	began := time.Now()
	principal, err := p.lookup(ctx, hash, kind)
	if errors.Is(err, domain.ErrInvalid) {
		p.cache.drop(hash)
		p.good.drop(hash)
		p.unknown.set(hash, struct{}{})
	}
	if err != nil {
		return nil, err
	}
	c := &Credential{Principal: principal, hash: hash, loaded: began, marker: marker, state: state}
	p.cache.set(hash, c)
	if _, known := p.good.get(hash); known || !c.Revoked {
		p.good.set(hash, c)
	}
	return c, nil
}
