// Package peers calls other processes: identity for lookups, and the services that handle requests.
package peers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/domain"
)

// Identity requests principals from the identity service.
type Identity struct {
	Client *peer.Client

	keys, tokens lookups
}

// Lookup returns the principal for the hash and the kind of a credential, or domain.ErrInvalid if there is none. Lookups that arrive
// while a call is running share the next one.
func (i *Identity) Lookup(ctx context.Context, hash [32]byte, kind string) (domain.Principal, error) {
	waiting := &i.tokens
	if kind == domain.KindKey {
		waiting = &i.keys
	}
	return waiting.find(ctx, hex.EncodeToString(hash[:]), func(ctx context.Context, batch []*lookup) { i.find(ctx, kind, batch) })
}

// find sets the results of a batch. If identity responds with an error, each credential is looked up alone: the previous release does not
// know batches, and a credential that identity cannot read must not affect others.
func (i *Identity) find(ctx context.Context, kind string, batch []*lookup) {
	if len(batch) == 1 {
		i.findOne(ctx, kind, batch[0])
		return
	}
	hashes := make([]string, len(batch))
	for n, l := range batch {
		hashes[n] = l.hash
	}
	var out internalapi.FoundCredentials
	err := i.post(ctx, "/internal/v1/credentials/lookup-batch", internalapi.LookupBatch{Hashes: hashes, Kind: kind}, &out)
	if failure := apperr.As(err); err != nil && failure.Kind != apperr.Unavailable && failure.Kind != apperr.Timeout {
		var all sync.WaitGroup
		for _, l := range batch {
			all.Go(func() { i.findOne(ctx, kind, l) })
		}
		all.Wait()
		return
	}
	found := make(map[string]*internalapi.Principal, len(out.Data))
	for n := range out.Data {
		found[out.Data[n].Hash] = &out.Data[n].Principal
	}
	for _, l := range batch {
		switch p := found[l.hash]; {
		case err != nil:
			l.err = fmt.Errorf("look up credentials: %w", err)
		case p == nil:
			l.err = domain.ErrInvalid
		default:
			l.principal, l.err = fromPrincipal(*p)
		}
	}
}

// findOne sets the result of one lookup.
func (i *Identity) findOne(ctx context.Context, kind string, l *lookup) {
	var out internalapi.Principal
	err := i.post(ctx, "/internal/v1/credentials/lookup", internalapi.Lookup{Hash: l.hash, Kind: &kind}, &out)
	switch {
	case err == nil:
		l.principal, l.err = fromPrincipal(out)
	case apperr.As(err).Kind == apperr.NotFound:
		l.err = domain.ErrInvalid
	default:
		l.err = fmt.Errorf("look up credential: %w", err)
	}
}

// post makes a call that only reads, so it is retried if the connection breaks.
func (i *Identity) post(ctx context.Context, path string, in, out any) error {
	ctx = caller.With(ctx, caller.Service("gateway", ids.Tenant{}, ""))
	err := i.Client.Do(ctx, http.MethodPost, path, in, out)
	if errors.Is(err, apperr.ErrUnavailable) {
		err = i.Client.Do(ctx, http.MethodPost, path, in, out)
	}
	return err
}

func fromPrincipal(p internalapi.Principal) (domain.Principal, error) {
	var tenant ids.Tenant
	if err := tenant.UnmarshalText([]byte(p.TenantID)); err != nil {
		return domain.Principal{}, fmt.Errorf("identity returned tenant %q: %w", p.TenantID, err)
	}
	c := caller.Caller{
		Tenant: tenant, Timezone: p.Timezone, Currency: p.Currency, PolicyVersion: p.PolicyVersion,
		Mode: caller.Mode(p.Mode), Clock: p.Clock, Credential: p.ID, Kind: p.Kind, Scopes: p.Scopes,
	}
	var limits domain.OwnLimits
	if own := p.Limits; own != nil {
		limits = domain.OwnLimits{Tenant: perMinute(own.RequestsPerMinute), Credential: perMinute(own.CredentialRequestsPerMinute)}
		if own.Caps != nil {
			c.Caps = *own.Caps
		}
	}
	encoded, err := caller.Encode(c)
	if err != nil {
		return domain.Principal{}, err
	}
	out := domain.Principal{
		Caller: c, Encoded: encoded,
		Scopes: strings.Join(p.Scopes, " "), Version: p.Version, Revoked: p.Revoked, Limits: limits,
	}
	if p.TenantStatus != nil {
		out.Suspended = *p.TenantStatus == internalapi.TenantSuspended || *p.TenantStatus == internalapi.TenantErasing
		out.Closing = *p.TenantStatus == internalapi.TenantClosing
	}
	if p.EraseAt != nil {
		out.EraseAt = *p.EraseAt
	}
	if p.ExpiresAt != nil {
		out.Expires = *p.ExpiresAt
		out.ExpirySet = p.ExpirySet != nil && *p.ExpirySet
	}
	if p.Origins != nil {
		out.Origins = *p.Origins
	}
	return out, nil
}

func perMinute(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// OriginRegistered reports whether an app has registered a browser origin.
func (i *Identity) OriginRegistered(ctx context.Context, origin string) (bool, error) {
	ctx = caller.With(ctx, caller.Service("gateway", ids.Tenant{}, ""))
	var out internalapi.Origin
	err := i.Client.Do(ctx, http.MethodGet, "/internal/v1/browser-origins?"+url.Values{"origin": {origin}}.Encode(), nil, &out)
	return out.Registered, err
}
