package app

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
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

	verified bool // the platform registers its own app, which it verifies and which can have its name
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
		Published: patch.Value(true), verified: true,
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

// VerifyApp records that the platform has verified an app and its publisher, or that it no longer does. An app that registered itself
// cannot be verified, because it has no publisher.
func (a *App) VerifyApp(ctx context.Context, by domain.Origin, id domain.AppID, verified bool) (app domain.PublishedApp, published bool, err error) {
	action, edit := verification(a.now(), verified)
	if _, published, err = a.changeApp(ctx, by, id, action, edit); err != nil {
		return domain.PublishedApp{}, false, err
	}
	app, err = store.AppByID(ctx, a.DB.Read(ctx), id)
	return app, published, err
}

// VerifyAppIn is VerifyApp in a transaction of the platform. The caller must publish the invalidations afterwards.
func (a *App) VerifyAppIn(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.AppID, verified bool) (domain.PublishedApp, error) {
	found, err := changeableApp(ctx, tx, id)
	if err != nil {
		return domain.PublishedApp{}, err
	}
	action, edit := verification(a.now(), verified)
	err = pg.As(ctx, tx, caller.FromContext(scope(ctx, found.TenantID, caller.Live)), func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		found.App, err = a.changeAppIn(ctx, tx, by, id, action, edit)
		return err
	})
	return found, err
}

// verification returns the action and the change that verifies an app, or ends its verification. A verified app keeps its time.
func verification(at time.Time, verified bool) (action string, edit func(domain.App) (domain.App, error)) {
	if !verified {
		return domain.AppUnverified, func(app domain.App) (domain.App, error) {
			app.VerifiedAt = nil
			return app, nil
		}
	}
	return domain.AppVerified, func(app domain.App) (domain.App, error) {
		if app.VerifiedAt == nil {
			app.VerifiedAt = &at
		}
		return app, nil
	}
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
	found, err := changeableApp(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return domain.App{}, false, err
	}
	err = a.inTenant(ctx, found.TenantID, func(ctx context.Context, tx pg.Tx) error {
		app, err = a.changeAppIn(ctx, tx, by, id, action, edit)
		return err
	})
	if err != nil {
		return domain.App{}, false, err
	}
	return app, a.publish(ctx, ids.Tenant{}), nil // its grants belong to many tenants
}

// changeableApp returns an app that belongs to a tenant.
func changeableApp(ctx context.Context, q pg.Q, id domain.AppID) (domain.PublishedApp, error) {
	found, err := store.AppByID(ctx, q, id)
	if err == nil && found.SelfRegistered() {
		err = domain.ErrSelfRegistered
	}
	return found, err
}

// changeAppIn changes an app in a transaction of its tenant, whose row is locked.
func (a *App) changeAppIn(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.AppID, action string, edit func(domain.App) (domain.App, error)) (domain.App, error) {
	old, err := store.AppForUpdate(ctx, tx, id)
	if err != nil {
		return domain.App{}, err
	}
	app, err := edit(old)
	if err != nil {
		return domain.App{}, err
	}
	app.UpdatedAt = a.now()
	if app, err = store.UpdateApp(ctx, tx, app); err != nil {
		return domain.App{}, err
	}
	if err := store.InvalidateGrants(ctx, tx, &id, nil); err != nil {
		return domain.App{}, err
	}
	return app, a.audit(ctx, tx, by, change{action, id.String(), view.AppForAdmin(old), view.AppForAdmin(app)})
}

func (a *App) patchApp(old domain.App, in Registration) (domain.App, error) {
	app := old
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
	if in.verified {
		app.VerifiedAt = new(a.now())
		return app, domain.CheckApp(app)
	}
	var wrong error
	if app.Name != old.Name {
		wrong = domain.CheckAppName(app.Name)
	}
	return app.Edited(old), apperr.Join(wrong, domain.CheckApp(app))
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
