package app

import (
	"context"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// RegisterApp registers an app that registers itself: without a tenant, for the operators of each. Its fields are valid. There is no audit
// record, because no tenant is concerned before the first consent.
func (a *App) RegisterApp(ctx context.Context, name string, redirects, scopes []string, network string) (domain.App, error) {
	created := domain.App{
		ID: domain.NewAppID(), Name: name, RedirectURIs: redirects, Scopes: scopes, Published: true, CreatedAt: a.now(),
	}
	err := a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.RegisterApp(ctx, tx, created, network) })
	return created, err
}

// maxRegistered is the maximum number of apps in a list.
const maxRegistered = 1000

// RegisteredApps returns the apps that registered themselves, newest first, at most 1,000.
func (a *App) RegisteredApps(ctx context.Context) ([]domain.RegisteredApp, error) {
	return store.RegisteredApps(ctx, a.DB.Read(ctx), maxRegistered)
}

// deleteRegistered deletes an app that registered itself, and so ends its grants at all tenants. There is no audit record, because the app
// belongs to no tenant.
func (a *App) deleteRegistered(ctx context.Context, id domain.AppID) (published bool, err error) {
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := store.DeleteRegisteredApp(ctx, tx, id, a.now()); err != nil {
			return err
		}
		return store.InvalidateGrants(ctx, tx, &id, nil)
	})
	if err != nil {
		return false, err
	}
	return a.publish(ctx, ids.Tenant{}), nil
}

// AppOfClient returns the id of the app that a client_id names: an id, or the URL of a stored document.
func (a *App) AppOfClient(ctx context.Context, clientID string) (domain.AppID, error) {
	if !domain.IsClientURL(clientID) {
		return domain.ParseAppID(clientID)
	}
	stored, err := store.StoredDocument(ctx, a.DB.Read(ctx), clientID)
	return stored.ID, err
}

// AllowClient allows the client_id of a deleted app again, if it is a URL. The next consent creates another app, and grants of the deleted
// app remain ended.
func (a *App) AllowClient(ctx context.Context, url string) error {
	return a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.ReleaseDocument(ctx, tx, url) })
}
