package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const platformKeyColumns = `id, name, scopes, created_at, created_by, last_used_at, revoked_at, revoked_by`

// UsePlatformKey returns the platform key with the given SHA-256, also a revoked one, and records its use once a minute.
func UsePlatformKey(ctx context.Context, tx pg.Tx, hash []byte, now time.Time) (domain.PlatformKey, error) {
	k, err := onePlatformKey(ctx, tx, domain.ErrPlatformKeyInvalid, `select `+platformKeyColumns+` from platform_keys where hash = $1`, hash)
	if err != nil || k.RevokedAt != nil || k.LastUsedAt != nil && now.Sub(*k.LastUsedAt) < time.Minute {
		return k, err
	}
	tx.QueueAtCommit(`update platform_keys set last_used_at = greatest(last_used_at, $2) where id = $1`, k.ID, now)
	return k, nil
}

// PlatformKeys returns all platform keys, newest first.
func PlatformKeys(ctx context.Context, q pg.Q) ([]domain.PlatformKey, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.PlatformKey], `select `+platformKeyColumns+` from platform_keys order by id desc`)
}

// LockPlatformKeys makes writers of platform keys take turns until the transaction ends, and counts the keys that are not revoked.
func LockPlatformKeys(ctx context.Context, tx pg.Tx) (int, error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('platform keys'))`); err != nil {
		return 0, fmt.Errorf("lock platform keys: %w", err)
	}
	return pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `select count(*) from platform_keys where revoked_at is null`)
}

// InsertPlatformKey adds a platform key. hash is the SHA-256 of the secret, which is not stored.
func InsertPlatformKey(ctx context.Context, tx pg.Tx, k domain.PlatformKey, hash []byte) error {
	return pg.Exec(ctx, tx, "insert platform key", `insert into platform_keys (id, name, hash, scopes, created_at, created_by) values ($1, $2, $3, $4, $5, $6)`,
		k.ID, k.Name, hash, k.Scopes, k.CreatedAt, k.CreatedBy)
}

// RevokePlatformKey ends a platform key and returns it. A key that was already revoked does not change.
func RevokePlatformKey(ctx context.Context, tx pg.Tx, id domain.PlatformKeyID, by domain.Origin, at time.Time) (domain.PlatformKey, error) {
	k, err := onePlatformKey(ctx, tx, domain.ErrPlatformKeyNotFound, `select `+platformKeyColumns+` from platform_keys where id = $1 for update`, id)
	if err != nil || k.RevokedAt != nil {
		return k, err
	}
	k = k.Revoked(by, at)
	if _, err := tx.Exec(ctx, `update platform_keys set revoked_at = $2, revoked_by = $3 where id = $1`, id, k.RevokedAt, k.RevokedBy); err != nil {
		return k, fmt.Errorf("revoke platform key: %w", err)
	}
	return k, nil
}

func onePlatformKey(ctx context.Context, q pg.Q, missing error, sql string, args ...any) (domain.PlatformKey, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.PlatformKey], missing, sql, args...)
}
