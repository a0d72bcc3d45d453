package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// StoredDocument returns the app whose client_id is the URL, also a deleted one, or domain.ErrAppNotFound.
func StoredDocument(ctx context.Context, q pg.Q, url string) (domain.StoredDocument, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.StoredDocument], domain.ErrAppNotFound,
		`select id, document_fresh_until as fresh_until, deleted_at from oauth_apps where document_url = $1 and tenant_id is null`, url)
}

// NewDocument is a valid document to store.
type NewDocument struct {
	URL        string
	App        domain.App // with the id for a new app
	Source     string     // who caused the fetch
	FetchedAt  time.Time  // when the fetch began
	FreshUntil time.Time
}

// PutDocument stores a document. It returns the id of its app, and whether an app changed that existed before. It returns
// domain.ErrAppNotFound if the platform has deleted the app.
func PutDocument(ctx context.Context, tx pg.Tx, d NewDocument) (id domain.AppID, changed bool, err error) {
	type row struct {
		AppID   domain.AppID
		Changed bool
	}
	got, err := pg.One(ctx, tx, pgx.RowToStructByName[row], domain.ErrAppNotFound, `select app_id, changed from put_document_app($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		d.App.ID, d.URL, d.App.Name, d.App.RedirectURIs, d.App.Scopes, d.Source, d.FetchedAt, d.FreshUntil, domain.NetworkPlaces, domain.RegisteredPlaces)
	return got.AppID, got.Changed, err
}

// ReleaseDocument allows the URL of a deleted app again, as the client_id of another app. It returns domain.ErrAppNotFound if no deleted
// app has the URL.
func ReleaseDocument(ctx context.Context, tx pg.Tx, url string) error {
	ok, err := pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, `select release_document($1)`, url)
	if err != nil {
		return fmt.Errorf("release the document of a client: %w", err)
	}
	if !ok {
		return domain.ErrAppNotFound
	}
	return nil
}
