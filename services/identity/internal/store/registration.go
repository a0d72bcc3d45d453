package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// RegisterApp adds an app that registers itself from a network, without a tenant. If there are too many unused ones, it replaces the oldest.
func RegisterApp(ctx context.Context, tx pg.Tx, a domain.App, network string) error {
	return pg.Exec(ctx, tx, "register app", `select register_app($1, $2, $3, $4, $5, $6, $7, $8)`,
		a.ID, a.Name, a.RedirectURIs, a.Scopes, network, a.CreatedAt, domain.NetworkPlaces, domain.RegisteredPlaces)
}

// UseRegisteredApp records a consent for an app that registered itself. It returns domain.ErrAppNotFound if there is none any more.
func UseRegisteredApp(ctx context.Context, tx pg.Tx, id domain.AppID, at time.Time) error {
	return found(ctx, tx, `select use_registered_app($1, $2)`, id, at)
}

// DeleteRegisteredApp deletes an app that registered itself. It returns domain.ErrAppNotFound if there is none.
func DeleteRegisteredApp(ctx context.Context, tx pg.Tx, id domain.AppID, at time.Time) error {
	return found(ctx, tx, `select delete_registered_app($1, $2)`, id, at)
}

func found(ctx context.Context, tx pg.Tx, sql string, id domain.AppID, at time.Time) error {
	ok, err := pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, sql, id, at)
	if err == nil && !ok {
		return domain.ErrAppNotFound
	}
	return err
}

// RegisteredApps returns up to limit apps that registered themselves, newest first.
func RegisteredApps(ctx context.Context, q pg.Q, limit int) ([]domain.RegisteredApp, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.RegisteredApp], `select '00000000-0000-0000-0000-000000000000'::uuid as tenant_id, id, name,
			redirect_uris, scopes, published, reuse_leeway_seconds, browser_origins, version, created_at, updated_at, deleted_at, null::timestamptz as verified_at, used_at, coalesce(document_url, '') as document_url
		from oauth_apps where tenant_id is null and deleted_at is null order by created_at desc, id desc limit $1`, limit)
}

// The time since the last consent is checked again when the row is locked, so that an app is not deleted during a consent. A deleted app
// with a document keeps its row, so that its client_id remains refused.
const sweepRegistered = `delete from oauth_apps where tenant_id is null and coalesce(used_at, created_at) < $1 and id in (
		select a.id from oauth_apps a where a.tenant_id is null and not (a.document_url is not null and a.deleted_at is not null) and a.created_at < $1 and coalesce(a.used_at, a.created_at) < $1
			and not exists (select from oauth_grants g where g.app_id = a.id) limit $2)`

// SweepRegisteredApps deletes a batch of apps that registered themselves and have no grant, and returns their number. tx has the worker role.
func SweepRegisteredApps(ctx context.Context, tx pg.Tx, now time.Time, limit int) (int, error) {
	n, err := pg.Affect(ctx, tx, "sweep registered apps", sweepRegistered, now.Add(-domain.UnusedLifetime), limit)
	return int(n), err
}
