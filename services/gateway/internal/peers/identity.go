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

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/domain"
)

// Identity requests the principal of a credential from the identity service.
type Identity struct{ Client *peer.Client }

// Lookup returns the principal for the hash and the kind of a credential, or domain.ErrInvalid if there is none. It only reads, so
// it is retried if the connection breaks.
func (i *Identity) Lookup(ctx context.Context, hash [32]byte, kind string) (domain.Principal, error) {
	ctx = caller.With(ctx, caller.Service("gateway", ids.Tenant{}, ""))
	in := internalapi.Lookup{Hash: hex.EncodeToString(hash[:]), Kind: &kind}
	var out internalapi.Principal
	err := i.Client.Do(ctx, http.MethodPost, "/internal/v1/credentials/lookup", in, &out)
	if errors.Is(err, apperr.ErrUnavailable) {
		err = i.Client.Do(ctx, http.MethodPost, "/internal/v1/credentials/lookup", in, &out)
	}
	if err != nil {
		if apperr.As(err).Kind == apperr.NotFound {
			return domain.Principal{}, domain.ErrInvalid
		}
		return domain.Principal{}, fmt.Errorf("look up credential: %w", err)
	}
	return fromPrincipal(out)
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
