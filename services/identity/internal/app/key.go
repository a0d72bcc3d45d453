package app

import (
	"context"
	"slices"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// NewKey says which key to make; Scopes is "all" or a comma list.
type NewKey struct {
	Tenant             ids.Tenant
	Mode, Name, Scopes string
}

// CreateKey makes an API key. The secret is returned here and never again.
func (a *App) CreateKey(ctx context.Context, by domain.Origin, n NewKey) (k domain.Key, secret string, err error) {
	mode, err := domain.ParseMode(n.Mode)
	if err != nil {
		return domain.Key{}, "", err
	}
	scopes, err := domain.ParseScopes(n.Scopes, a.Scopes)
	if err != nil {
		return domain.Key{}, "", err
	}
	if err := domain.CheckKeyName(n.Name); err != nil {
		return domain.Key{}, "", err
	}
	secret = apikey.New(mode)
	hash := apikey.Hash(secret)
	k = domain.Key{
		ID: domain.NewKeyID(), TenantID: n.Tenant, Livemode: mode == caller.Live, Name: n.Name, Scopes: scopes,
		Version: 1, CreatedAt: a.now(),
	}
	err = a.DB.Tx(scope(ctx, n.Tenant, mode), func(ctx context.Context, tx pg.Tx) error {
		// Without this lock a key made beside a change of its tenant could miss the invalidation of that change.
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		there, err := store.CountKeys(ctx, tx)
		if err != nil {
			return err
		}
		if err := domain.KeyPlaces.Room(there); err != nil {
			return err
		}
		if err := store.InsertKey(ctx, tx, k, hash[:]); err != nil {
			return err
		}
		return a.audit(ctx, tx, by, change{domain.KeyCreated, k.ID.String(), nil, view.KeyForAdmin(k)})
	})
	if err != nil {
		return domain.Key{}, "", err
	}
	return k, secret, nil
}

// RevokeKey ends a key for good. Every gateway refuses it once published is true. While Redis is away published is false:
// gateways re-read what they remember within a second, and RetryPublish publishes the invalidation later.
// Revoking twice changes nothing and publishes again.
func (a *App) RevokeKey(ctx context.Context, by domain.Origin, id domain.KeyID) (k domain.Key, published bool, err error) {
	home, err := store.KeyHome(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return domain.Key{}, false, err
	}
	ctx = scope(ctx, home.TenantID, domain.ModeOf(home.Livemode))
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		if k, err = store.Key(ctx, tx, id); err != nil {
			return err
		}
		if err := store.InvalidateKey(ctx, tx, k); err != nil {
			return err
		}
		if k.RevokedAt != nil {
			return nil
		}
		before := k
		if k, err = store.RevokeKey(ctx, tx, id, a.now()); err != nil {
			return err
		}
		return a.audit(ctx, tx, by, change{domain.KeyRevoked, k.ID.String(), view.KeyForAdmin(before), view.KeyForAdmin(k)})
	})
	if err != nil {
		return domain.Key{}, false, err
	}
	return k, a.publish(ctx, home.TenantID), nil
}

// RevokeKeyAt is RevokeKey for a key of the caller's tenant and mode; any other is ErrKeyNotFound. A signal that Redis has not got yet
// follows by itself.
func (a *App) RevokeKeyAt(ctx context.Context, by domain.Origin, id domain.KeyID) (domain.Key, error) {
	if _, err := store.Key(ctx, a.DB.Read(ctx), id); err != nil {
		return domain.Key{}, err
	}
	k, _, err := a.RevokeKey(ctx, by, id)
	return k, err
}

// Keys returns a tenant's keys of both modes, newest first.
func (a *App) Keys(ctx context.Context, tenant ids.Tenant) ([]domain.Key, error) {
	var all []domain.Key
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		ctx := scope(ctx, tenant, mode)
		keys, err := store.Keys(ctx, a.DB.Read(ctx))
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	slices.SortFunc(all, func(x, y domain.Key) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return all, nil
}
