package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const (
	appFields  = `tenant_id, id, name, redirect_uris, scopes, published, reuse_leeway_seconds, browser_origins, version, created_at, updated_at, deleted_at`
	appColumns = appFields + `, case when verified_publisher = (select t.name from tenants t where t.tenant_id = oauth_apps.tenant_id) then verified_at end as verified_at`
)

// AppByID returns an app of any tenant, or domain.ErrAppNotFound if there is none or it was deleted.
func AppByID(ctx context.Context, q pg.Q, id domain.AppID) (domain.PublishedApp, error) {
	a, err := pg.One(ctx, q, pgx.RowToStructByName[domain.PublishedApp], domain.ErrAppNotFound, `select `+appFields+`, verified_at, publisher, publisher_status,
			coalesce((select d.document_url from oauth_apps d where d.id = $1 and d.tenant_id is null), '') as document_url
		from app_by_client_id($1) cross join lateral app_publisher(id)`, id)
	if err == nil && a.DeletedAt != nil {
		return domain.PublishedApp{}, domain.ErrAppNotFound
	}
	return a, err
}

// AppForUpdate locks an app of the caller's tenant until the transaction ends.
func AppForUpdate(ctx context.Context, tx pg.Tx, id domain.AppID) (domain.App, error) {
	return oneApp(ctx, tx, `select `+appColumns+` from oauth_apps where tenant_id = @tenant and id = @id and deleted_at is null for no key update`, pg.Args{"id": id})
}

// Apps returns the apps of the caller's tenant that were not deleted, newest first.
func Apps(ctx context.Context, q pg.Q) ([]domain.App, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.App], `select `+appColumns+` from oauth_apps
		where tenant_id = @tenant and deleted_at is null order by id desc`, pg.Args{})
}

// CountApps counts the apps of the caller's tenant that were not deleted. The tenant's row must be locked.
func CountApps(ctx context.Context, tx pg.Tx) (int, error) {
	return pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `select count(*) from oauth_apps where tenant_id = @tenant and deleted_at is null`, pg.Args{})
}

// InsertApp adds an app of the caller's tenant. It returns domain.ErrCommandLineDeleted if the id is taken, which only happens to the
// app with a fixed id.
func InsertApp(ctx context.Context, tx pg.Tx, a domain.App) (domain.App, error) {
	created, err := oneApp(ctx, tx, `insert into oauth_apps (tenant_id, id, name, redirect_uris, scopes, published, reuse_leeway_seconds, browser_origins, created_at, updated_at, verified_at, verified_publisher)
		values (@tenant, @id, @name, @redirect_uris, @scopes, @published, @leeway, @origins, @updated_at, @updated_at, @verified_at, `+verifiedPublisher+`) returning `+appColumns, appArgs(a))
	if name := pg.ConstraintName(err); name == "oauth_apps_id_key" || name == "oauth_apps_pkey" {
		return domain.App{}, domain.ErrCommandLineDeleted
	}
	return created, err
}

// UpdateApp writes the changeable columns of an app of the caller's tenant and increments its version.
func UpdateApp(ctx context.Context, tx pg.Tx, a domain.App) (domain.App, error) {
	return oneApp(ctx, tx, `update oauth_apps set name = @name, redirect_uris = @redirect_uris, scopes = @scopes, published = @published,
			reuse_leeway_seconds = @leeway, browser_origins = @origins, updated_at = @updated_at, deleted_at = @deleted_at,
			verified_at = @verified_at, verified_publisher = `+verifiedPublisher+`, version = version + 1
		where tenant_id = @tenant and id = @id returning `+appColumns, appArgs(a))
}

// verifiedPublisher is the name of the caller's tenant, which the verification of an app is for.
const verifiedPublisher = `case when @verified_at::timestamptz is not null then (select t.name from tenants t where t.tenant_id = @tenant) end`

// OriginRegistered reports whether an app of any tenant has registered an origin.
func OriginRegistered(ctx context.Context, q pg.Q, origin string) (bool, error) {
	return pg.One(ctx, q, pgx.RowTo[bool], pgx.ErrNoRows, `select origin_is_registered($1)`, origin)
}

func appArgs(a domain.App) pg.Args {
	return pg.Args{
		"id": a.ID, "name": a.Name, "redirect_uris": a.RedirectURIs, "scopes": a.Scopes, "published": a.Published,
		"leeway": a.ReuseLeewaySeconds, "origins": a.BrowserOrigins, "updated_at": a.UpdatedAt, "deleted_at": a.DeletedAt, "verified_at": a.VerifiedAt,
	}
}

func oneApp(ctx context.Context, q pg.Q, sql string, args pg.Args) (domain.App, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.App], domain.ErrAppNotFound, sql, args)
}
