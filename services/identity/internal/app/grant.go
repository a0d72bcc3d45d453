package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// ErrNothingGranted reports that the operator's role has none of the scopes that an app requests, that the operator is not a
// member of the tenant, or that the tenant is suspended.
var ErrNothingGranted = errors.New("the operator's role at the tenant has none of the scopes that the app asks for")

// Consent is an operator's consent.
type Consent struct {
	Operator    domain.OperatorID
	App         domain.App
	Tenant      ids.Tenant
	Mode        caller.Mode
	Scopes      []string // requested by the app
	RedirectURI string
	Challenge   string // S256
	CodeHash    []byte
}

// Grant writes an operator's consent, restricted to the scopes of their role at the tenant. The app receives a code for it.
func (a *App) Grant(ctx context.Context, by domain.Origin, in Consent) (g domain.Grant, err error) {
	now := a.now()
	g = domain.Grant{
		TenantID: in.Tenant, Livemode: in.Mode == caller.Live, ID: domain.NewGrantID(), AppID: in.App.ID, OperatorID: in.Operator,
		RedirectURI: in.RedirectURI, CodeChallenge: in.Challenge, CodeExpiresAt: now.Add(domain.CodeLifetime),
		EndsAt: now.Add(domain.GrantLifetime), CreatedAt: now,
	}
	replaced := false
	err = a.DB.Tx(scope(ctx, in.Tenant, in.Mode), func(ctx context.Context, tx pg.Tx) error {
		t, err := store.TenantForUpdate(ctx, tx)
		if err != nil {
			return err
		}
		m, err := present(ctx, tx, in.Operator)
		if err != nil {
			return err
		}
		if m != nil && in.App.Serves(in.Tenant) && t.Status.Consents() {
			g.Role, g.Scopes = m.Role, m.Role.Scopes(domain.Intersect(in.Scopes, in.App.Scopes))
		}
		if len(g.Scopes) == 0 {
			return ErrNothingGranted
		}
		if replaced, err = a.makePlace(ctx, tx, by, in); err != nil {
			return err
		}
		if in.App.SelfRegistered() {
			if err := store.UseRegisteredApp(ctx, tx, in.App.ID, now); err != nil {
				return err
			}
		}
		if err := store.InsertGrant(ctx, tx, g, in.CodeHash); err != nil {
			return err
		}
		return a.audit(ctx, tx, by, change{domain.GrantCreated, g.ID.String(), nil, view.GrantForAdmin(g)})
	})
	if err == nil && replaced {
		a.Metrics.grantEnded(domain.Replaced)
		a.publish(ctx, in.Tenant)
	}
	return g, err
}

// makePlace revokes the oldest grants of the operator for the app if there are too many, and reports whether it did.
func (a *App) makePlace(ctx context.Context, tx pg.Tx, by domain.Origin, in Consent) (bool, error) {
	there, err := store.GrantIDs(ctx, tx, in.Operator, in.App)
	if err != nil {
		return false, err
	}
	over := there[:max(0, len(there)-domain.GrantPlaces+1)]
	for _, id := range over {
		if _, err := a.revoke(ctx, tx, by, id, domain.Replaced); err != nil {
			return false, err
		}
	}
	return len(over) > 0, nil
}

// GrantByHash returns a grant of any tenant, by the hash of its code or, if code is nil, by the hash of the family of its refresh
// tokens.
func (a *App) GrantByHash(ctx context.Context, code, family []byte) (domain.Grant, error) {
	if code != nil {
		return store.GrantByCode(ctx, a.DB.Read(ctx), code)
	}
	return store.GrantByFamily(ctx, a.DB.Read(ctx), family)
}

// GrantByAccessToken returns the id and the app of the grant of an access token, expired or not.
func (a *App) GrantByAccessToken(ctx context.Context, hash []byte) (domain.Grant, error) {
	p, err := store.AccessToken(ctx, a.DB.Read(ctx), hash)
	if errors.Is(err, domain.ErrCredentialNotFound) {
		return domain.Grant{}, domain.ErrGrantNotFound
	}
	return domain.Grant{TenantID: p.TenantID, Livemode: p.Livemode, ID: p.GrantID, AppID: p.AppID, OperatorID: p.OperatorID}, err
}

// Introspection is the state of an access token: RFC 7662, section 2.2.
type Introspection struct {
	Active   bool   `json:"active"`
	Scope    string `json:"scope,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Subject  string `json:"sub,omitempty"`
	Expires  int64  `json:"exp,omitempty"` // seconds since 1970
	Type     string `json:"token_type,omitempty"`
	Grant    string `json:"grant_id,omitempty"`
	Tenant   string `json:"tenant_id,omitempty"`
	Mode     string `json:"mode,omitempty"`
}

// Introspect returns the current state of a token. An invalid token is not active, and Introspect returns nothing else about it.
func (a *App) Introspect(ctx context.Context, token string) (Introspection, error) {
	if !domain.IsAccessToken(token) {
		return Introspection{}, nil
	}
	p, err := store.AccessToken(ctx, a.DB.Read(ctx), domain.SecretHash(token))
	if errors.Is(err, domain.ErrCredentialNotFound) {
		return Introspection{}, nil
	}
	if err != nil || p.Revoked || !a.now().Before(p.ExpiresAt) {
		return Introspection{}, err
	}
	found, err := store.AppByID(ctx, a.DB.Read(ctx), p.AppID)
	if err != nil {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, Scope: strings.Join(p.Granted(), " "), ClientID: found.ClientID(), Subject: p.OperatorID.String(), Expires: p.ExpiresAt.Unix(),
		Type: "Bearer", Grant: p.GrantID.String(), Tenant: p.TenantID.String(), Mode: string(caller.ModeOf(p.Livemode)),
	}, nil
}

// Rotate exchanges the code or the refresh token of a grant. It returns ErrRotated if another request was first.
func (a *App) Rotate(ctx context.Context, g domain.Grant, e store.Exchange) error {
	e.Grant, e.Now = g.ID, a.now()
	err := a.DB.Tx(scope(ctx, g.TenantID, caller.ModeOf(g.Livemode)), func(ctx context.Context, tx pg.Tx) error {
		return store.Rotate(ctx, tx, e)
	})
	if err == nil {
		failpoint.Here("grant.rotated")
	}
	return err
}

// RevokeGrant ends a grant and all its tokens. If published is true, it has ended for every gateway. A second revocation publishes
// again.
func (a *App) RevokeGrant(ctx context.Context, by domain.Origin, id domain.GrantID, why domain.RevokeReason) (published bool, err error) {
	tenantMode, err := store.GrantTenantMode(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return false, err
	}
	ended := false
	err = a.DB.Tx(scope(ctx, tenantMode.TenantID, caller.ModeOf(tenantMode.Livemode)), func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		ended, err = a.revoke(ctx, tx, by, id, why)
		return err
	})
	if err != nil {
		return false, err
	}
	if ended {
		a.Metrics.grantEnded(why)
	}
	failpoint.Here("grant.revoked")
	return a.publish(ctx, tenantMode.TenantID), nil
}

// RevokeGrantAt is RevokeGrant for a grant of the given tenant. It returns ErrGrantNotFound for any other grant.
func (a *App) RevokeGrantAt(ctx context.Context, by domain.Origin, tenant ids.Tenant, id domain.GrantID) error {
	tenantMode, err := store.GrantTenantMode(ctx, a.DB.Read(ctx), id)
	if err == nil && tenantMode.TenantID != tenant {
		err = domain.ErrGrantNotFound
	}
	if err != nil {
		return err
	}
	_, err = a.RevokeGrant(ctx, by, id, domain.ByOperator)
	return err
}

// revoke ends a grant in tx. It returns false if the grant had already ended.
func (a *App) revoke(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.GrantID, why domain.RevokeReason) (ended bool, err error) {
	if ended, err = store.RevokeGrant(ctx, tx, id, why, a.now()); err != nil || !ended {
		return false, err
	}
	return true, a.audit(ctx, tx, by, change{domain.GrantRevoked, id.String(), nil, map[string]any{"reason": why}})
}

// revokeAll ends the grants that an operator gave at all tenants before the ending was recorded.
func (a *App) revokeAll(ctx context.Context, e domain.Ending) (published bool, err error) {
	all, err := store.GrantsOf(ctx, a.DB.Read(ctx), e.OperatorID)
	if err != nil {
		return false, err
	}
	published = true
	for _, g := range all {
		if g.CreatedAt.After(e.NotedAt) {
			continue
		}
		ok, err := a.RevokeGrant(ctx, e.By(), g.ID, e.Reason)
		if err != nil {
			return false, err
		}
		published = published && ok
	}
	return published, nil
}

// OwnGrants returns an operator's grants that apps use, across all tenants, newest first.
func (a *App) OwnGrants(ctx context.Context, operator domain.OperatorID) ([]domain.OwnGrant, error) {
	all, err := store.GrantsOf(ctx, a.DB.Read(ctx), operator)
	return slices.DeleteFunc(all, func(g domain.OwnGrant) bool { return !g.Exchanged }), err
}

// EndOwnGrant revokes a grant of an operator. It does not change a grant of another operator, or a grant that has ended.
func (a *App) EndOwnGrant(ctx context.Context, by domain.Origin, operator domain.OperatorID, id domain.GrantID) error {
	all, err := store.GrantsOf(ctx, a.DB.Read(ctx), operator)
	if err != nil || !slices.ContainsFunc(all, func(g domain.OwnGrant) bool { return g.ID == id }) {
		return err
	}
	_, err = a.RevokeGrant(ctx, by, id, domain.ByOperator)
	return err
}

// maxGrants is the maximum number of grants in a list for one mode.
const maxGrants = 1000

// Grants returns the grants of a tenant in both modes, newest first, at most 1,000 of each: of one operator or, if operator is nil,
// of all.
func (a *App) Grants(ctx context.Context, tenant ids.Tenant, operator *domain.OperatorID) ([]domain.ShownGrant, error) {
	var all []domain.ShownGrant
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		ctx := scope(ctx, tenant, mode)
		grants, err := store.Grants(ctx, a.DB.Read(ctx), operator, maxGrants)
		if err != nil {
			return nil, err
		}
		all = append(all, grants...)
	}
	slices.SortFunc(all, func(x, y domain.ShownGrant) int { return strings.Compare(y.ID.String(), x.ID.String()) }) // ids increase with time
	return all, nil
}
