package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// Registration contains the settings of an app to register, or the settings to change. Scopes is "all" or a comma-separated list.
type Registration struct {
	Name, Scopes patch.Field[string]
	RedirectURIs patch.Field[[]string]
	Origins      patch.Field[[]string] // browser origins
	Published    patch.Field[bool]
	ReuseLeeway  patch.Field[int] // seconds
}

// CreateApp registers an app of a tenant.
func (a *App) CreateApp(ctx context.Context, by domain.Origin, tenant ids.Tenant, in Registration) (created domain.App, err error) {
	err = a.DB.Tx(scope(ctx, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		created, err = a.CreateAppIn(ctx, tx, by, tenant, in)
		return err
	})
	return created, err
}

// RegisterCommandLine registers the command line holdfast as a published app of a tenant, with all scopes. If it is registered already, by
// any tenant, its settings and scopes are renewed.
func (a *App) RegisterCommandLine(ctx context.Context, by domain.Origin, tenant ids.Tenant) (app domain.App, published bool, err error) {
	id, err := domain.ParseAppID(domain.CommandLineID)
	if err != nil {
		return domain.App{}, false, err
	}
	in := Registration{
		Name: patch.Value("Holdfast CLI"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{domain.CommandLineRedirect}),
		Published: patch.Value(true),
	}
	if app, published, err = a.UpdateApp(ctx, by, id, in); !errors.Is(err, domain.ErrAppNotFound) {
		return app, published, err
	}
	err = a.DB.Tx(scope(ctx, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		app, err = a.createApp(ctx, tx, by, domain.App{ID: id, TenantID: tenant, UpdatedAt: a.now()}, in)
		return err
	})
	return app, true, err
}

// CreateAppIn is CreateApp in a transaction of the tenant and of live mode.
func (a *App) CreateAppIn(ctx context.Context, tx pg.Tx, by domain.Origin, tenant ids.Tenant, in Registration) (created domain.App, err error) {
	return a.createApp(ctx, tx, by, domain.App{ID: domain.NewAppID(), TenantID: tenant, UpdatedAt: a.now()}, in)
}

func (a *App) createApp(ctx context.Context, tx pg.Tx, by domain.Origin, input domain.App, in Registration) (created domain.App, err error) {
	if input, err = a.patchApp(input, in); err != nil {
		return domain.App{}, err
	}
	t, err := store.TenantForUpdate(ctx, tx)
	if err != nil {
		return domain.App{}, err
	}
	there, err := store.CountApps(ctx, tx)
	if err != nil {
		return domain.App{}, err
	}
	if err := domain.AppPlaces.For(t.Caps).Room(there); err != nil {
		return domain.App{}, err
	}
	if created, err = store.InsertApp(ctx, tx, input); err != nil {
		return domain.App{}, err
	}
	return created, a.audit(ctx, tx, by, change{domain.AppCreated, created.ID.String(), nil, view.AppForAdmin(created)})
}

// UpdateApp changes an app. Its tokens lose removed scopes and permissions with their next request.
func (a *App) UpdateApp(ctx context.Context, by domain.Origin, id domain.AppID, in Registration) (app domain.App, published bool, err error) {
	return a.changeApp(ctx, by, id, domain.AppUpdated, func(app domain.App) (domain.App, error) { return a.patchApp(app, in) })
}

// DeleteApp ends an app and all its grants.
func (a *App) DeleteApp(ctx context.Context, by domain.Origin, id domain.AppID) (app domain.App, published bool, err error) {
	found, err := store.AppByID(ctx, a.DB.Read(ctx), id)
	if err == nil && found.SelfRegistered() {
		published, err = a.deleteRegistered(ctx, id)
		return found.App, published, err
	}
	return a.changeApp(ctx, by, id, domain.AppDeleted, func(app domain.App) (domain.App, error) {
		app.DeletedAt = new(a.now())
		return app, nil
	})
}

// OwnApp returns an app of the given tenant that was not deleted. It returns ErrAppNotFound for any other app.
func (a *App) OwnApp(ctx context.Context, tenant ids.Tenant, id domain.AppID) (domain.App, error) {
	found, err := store.AppByID(ctx, a.DB.Read(ctx), id)
	if err == nil && found.TenantID != tenant {
		err = domain.ErrAppNotFound
	}
	return found.App, err
}

func (a *App) changeApp(ctx context.Context, by domain.Origin, id domain.AppID, action string, edit func(domain.App) (domain.App, error)) (app domain.App, published bool, err error) {
	found, err := store.AppByID(ctx, a.DB.Read(ctx), id)
	if err == nil && found.SelfRegistered() {
		err = domain.ErrSelfRegistered
	}
	if err != nil {
		return domain.App{}, false, err
	}
	err = a.inTenant(ctx, found.TenantID, func(ctx context.Context, tx pg.Tx) error {
		old, err := store.AppForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		if app, err = edit(old); err != nil {
			return err
		}
		app.UpdatedAt = a.now()
		if app, err = store.UpdateApp(ctx, tx, app); err != nil {
			return err
		}
		if err := store.InvalidateGrants(ctx, tx, &id, nil); err != nil {
			return err
		}
		return a.audit(ctx, tx, by, change{action, id.String(), view.AppForAdmin(old), view.AppForAdmin(app)})
	})
	if err != nil {
		return domain.App{}, false, err
	}
	return app, a.publish(ctx, ids.Tenant{}), nil // its grants belong to many tenants
}

func (a *App) patchApp(app domain.App, in Registration) (domain.App, error) {
	in.Name.Set(&app.Name)
	in.Published.Set(&app.Published)
	in.RedirectURIs.Set(&app.RedirectURIs)
	in.Origins.Set(&app.BrowserOrigins)
	if app.BrowserOrigins == nil {
		app.BrowserOrigins = []string{}
	}
	in.ReuseLeeway.Set(&app.ReuseLeewaySeconds)
	if given := in.Scopes.Pointer(); given != nil {
		scopes, err := domain.ParseScopes(*given, a.Scopes)
		if err != nil {
			return domain.App{}, err
		}
		app.Scopes = scopes
	}
	return app, domain.CheckApp(app)
}

// AppByID returns an app of any tenant.
func (a *App) AppByID(ctx context.Context, id domain.AppID) (domain.PublishedApp, error) {
	return store.AppByID(ctx, a.DB.Read(ctx), id)
}

// OriginRegistered reports whether an app of any tenant has registered an origin.
func (a *App) OriginRegistered(ctx context.Context, origin string) (bool, error) {
	return store.OriginRegistered(ctx, a.DB.Read(ctx), origin)
}

// Apps returns a tenant's apps, newest first.
func (a *App) Apps(ctx context.Context, tenant ids.Tenant) ([]domain.App, error) {
	ctx = scope(ctx, tenant, caller.Live)
	return store.Apps(ctx, a.DB.Read(ctx))
}
