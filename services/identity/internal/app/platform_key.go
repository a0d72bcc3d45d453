package app

import (
	"context"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// CreatePlatformKey creates a credential of the platform API. The secret cannot be read again. scopes is "all" or a comma-separated
// list.
func (a *App) CreatePlatformKey(ctx context.Context, by domain.Origin, name, scopes string) (k domain.PlatformKey, secret string, err error) {
	if k, err = domain.NewPlatformKey(name, scopes, by, a.now()); err != nil {
		return domain.PlatformKey{}, "", err
	}
	secret = apikey.Secret(domain.PlatformSecret, apikey.KeyDigits)
	hash := apikey.Hash(secret)
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		there, err := store.LockPlatformKeys(ctx, tx)
		if err != nil {
			return err
		}
		if err := domain.PlatformKeyPlaces.Room(there); err != nil {
			return err
		}
		return store.InsertPlatformKey(ctx, tx, k, hash[:])
	})
	return k, secret, err
}

// PlatformKeys returns all platform keys, newest first.
func (a *App) PlatformKeys(ctx context.Context) (all []domain.PlatformKey, err error) {
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		all, err = store.PlatformKeys(ctx, tx)
		return err
	})
	return all, err
}

// RevokePlatformKey ends a platform key permanently, from its next request on, because each request reads it. A second revocation
// changes nothing.
func (a *App) RevokePlatformKey(ctx context.Context, by domain.Origin, id domain.PlatformKeyID) (k domain.PlatformKey, err error) {
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		k, err = store.RevokePlatformKey(ctx, tx, id, by, a.now())
		return err
	})
	return k, err
}

// UsePlatformKey returns the platform key with a secret, or an error of a credential. A malformed secret is not looked up.
func (a *App) UsePlatformKey(ctx context.Context, secret string) (k domain.PlatformKey, err error) {
	if !apikey.Has(secret, domain.PlatformSecret, apikey.KeyDigits) {
		return k, domain.ErrPlatformKeyInvalid
	}
	hash := apikey.Hash(secret)
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		k, err = store.UsePlatformKey(ctx, tx, hash[:], a.now())
		return err
	})
	if err == nil && k.RevokedAt != nil {
		err = domain.ErrPlatformKeyRevoked
	}
	return k, err
}
