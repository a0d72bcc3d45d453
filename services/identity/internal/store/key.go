package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
)

const keyColumns = `tenant_id, livemode, id, name, scopes, version, created_at, last_used_at, revoked_at`

// Principal returns what the credential of this SHA-256 stands for, of any tenant and revoked ones too.
func Principal(ctx context.Context, q pg.Q, hash []byte) (domain.Principal, error) {
	rows, err := q.Query(ctx, `select key_id, tenant_id, livemode, name, scopes, version, timezone, currency,
		policy_version, clock, revoked from credential_by_hash($1)`, hash)
	if err != nil {
		return domain.Principal{}, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[domain.Principal])
	return p, notFound(err, domain.ErrCredentialNotFound)
}

// Home is where a key belongs.
type Home struct {
	TenantID ids.Tenant
	Livemode bool
}

// KeyHome finds a key's tenant and mode by its id alone, for whoever manages all tenants.
func KeyHome(ctx context.Context, q pg.Q, id domain.KeyID) (Home, error) {
	rows, err := q.Query(ctx, `select tenant_id, livemode from key_home($1)`, id)
	if err != nil {
		return Home{}, err
	}
	home, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Home])
	return home, notFound(err, domain.ErrKeyNotFound)
}

// Key returns one key of the caller's tenant and mode.
func Key(ctx context.Context, q pg.Q, id domain.KeyID) (domain.Key, error) {
	rows, err := q.Query(ctx, `select `+keyColumns+` from api_keys where id = $1`, id)
	return oneKey(rows, err)
}

// Keys returns the keys of the caller's tenant and mode, newest first.
func Keys(ctx context.Context, q pg.Q) ([]domain.Key, error) {
	rows, err := q.Query(ctx, `select `+keyColumns+` from api_keys order by id desc`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[domain.Key])
}

// CountKeys counts the keys of the caller's tenant and mode that are not revoked. The tenant's row is locked, so that
// keys are counted and made one after the other.
func CountKeys(ctx context.Context, tx pg.Tx) (int, error) {
	rows, err := tx.Query(ctx, `select count(*) from api_keys where revoked_at is null`)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

// InsertKey adds a key; hash is the SHA-256 of the secret, which is stored nowhere.
func InsertKey(ctx context.Context, tx pg.Tx, k domain.Key, hash []byte) error {
	_, err := tx.Exec(ctx, `insert into api_keys (tenant_id, livemode, id, name, hash, scopes, version, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		k.TenantID, k.Livemode, k.ID, k.Name, hash, k.Scopes, k.Version, k.CreatedAt)
	return err
}

// RevokeKey ends an active key and returns it.
func RevokeKey(ctx context.Context, tx pg.Tx, id domain.KeyID, at time.Time) (domain.Key, error) {
	rows, err := tx.Query(ctx, `update api_keys set revoked_at = $2, version = version + 1
		where id = $1 and revoked_at is null returning `+keyColumns, id, at)
	return oneKey(rows, err)
}

// TouchKeys notes the last use of keys that have none noted in the last minute; tx has the worker role.
func TouchKeys(ctx context.Context, tx pg.Tx, used map[domain.KeyID]time.Time) error {
	b := &pgx.Batch{}
	for id, at := range used {
		b.Queue(`update api_keys set last_used_at = $2
			where id = $1 and (last_used_at is null or last_used_at <= $2::timestamptz - interval '1 minute')`, id, at)
	}
	return tx.SendBatch(ctx, b).Close()
}

func oneKey(rows pgx.Rows, err error) (domain.Key, error) {
	if err != nil {
		return domain.Key{}, err
	}
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[domain.Key])
	return k, notFound(err, domain.ErrKeyNotFound)
}
