package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const keyColumns = `tenant_id, livemode, id, name, scopes, version, created_at, last_used_at, expires_at, revoked_at, successor is not null as replaced`

// FoundKey is the principal of the key with a hash.
type FoundKey struct {
	Hash []byte
	domain.Principal
}

// Principals returns the principals of the keys with the given SHA-256 hashes, of any tenant, in any order, including revoked ones.
func Principals(ctx context.Context, q pg.Q, hashes [][]byte) ([]FoundKey, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[FoundKey], `
		select hash, key_id, tenant_id, livemode, name, scopes, version, timezone, currency, policy_version, clock, expires_at, replaced, revoked,
			requests_per_minute, credential_requests_per_minute, caps, s.status as tenant_status, s.erase_at
		from unnest(@hashes::bytea[]) hash cross join lateral key_by_hash(hash) k
			cross join lateral tenant_limits(k.tenant_id) cross join lateral tenant_status(k.tenant_id) s
			cross join lateral key_replaced(k.key_id)`, pg.Args{"hashes": hashes})
}

// TenantMode is the tenant and the mode of a key.
type TenantMode struct {
	TenantID ids.Tenant
	Livemode bool
}

// KeyTenantMode finds a key's tenant and mode by its id, for the command line, which manages all tenants.
func KeyTenantMode(ctx context.Context, q pg.Q, id domain.KeyID) (TenantMode, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[TenantMode], domain.ErrKeyNotFound,
		`select tenant_id, livemode from key_home(@id)`, pg.Args{"id": id})
}

// Key returns one key of the caller's tenant and mode, or domain.ErrKeyNotFound.
func Key(ctx context.Context, q pg.Q, id domain.KeyID) (domain.Key, error) {
	return oneKey(ctx, q, `select `+keyColumns+` from api_keys
		where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
}

// Keys returns at most limit keys of the caller's tenant and mode, newest first. 0 means no limit.
func Keys(ctx context.Context, q pg.Q, limit int) ([]domain.Key, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Key], `select `+keyColumns+` from api_keys
		where tenant_id = @tenant and livemode = @live order by id desc limit nullif(@limit::bigint, 0)`, pg.Args{"limit": limit})
}

// KeyPage returns at most limit keys of the caller's tenant and mode that are older than the key before, newest first. The zero id is
// newer than every key.
func KeyPage(ctx context.Context, q pg.Q, before domain.KeyID, limit int) ([]domain.Key, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Key], `select `+keyColumns+` from api_keys
		where tenant_id = @tenant and livemode = @live and (@before::uuid is null or id < @before) order by id desc limit @limit`,
		pg.Args{"before": before, "limit": limit})
}

// CountKeys counts the keys of the caller's tenant and mode that have not ended. The tenant's row must be locked, so that keys are
// counted and created one after the other.
func CountKeys(ctx context.Context, tx pg.Tx, now time.Time) (int, error) {
	return pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `select count(*) from api_keys
		where tenant_id = @tenant and livemode = @live and revoked_at is null and (expires_at is null or expires_at > @now)`, pg.Args{"now": now})
}

// InsertKey adds a key of the caller's tenant and mode. hash is the SHA-256 of the secret, which is not stored.
func InsertKey(ctx context.Context, tx pg.Tx, k domain.Key, hash []byte) error {
	return pg.Exec(ctx, tx, "insert key", `insert into api_keys (tenant_id, livemode, id, name, hash, scopes, version, created_at, expires_at)
		values (@tenant, @live, @id, @name, @hash, @scopes, @version, @created_at, @expires_at)`,
		pg.Args{"expires_at": k.ExpiresAt, "id": k.ID, "name": k.Name, "hash": hash, "scopes": k.Scopes, "version": k.Version, "created_at": k.CreatedAt})
}

// RevokeKey ends an active key of the caller's tenant and mode and returns it.
func RevokeKey(ctx context.Context, tx pg.Tx, id domain.KeyID, at time.Time) (domain.Key, error) {
	return oneKey(ctx, tx, `update api_keys set revoked_at = @at, version = version + 1
		where tenant_id = @tenant and livemode = @live and id = @id and revoked_at is null
		returning `+keyColumns, pg.Args{"id": id, "at": at})
}

// EndKey writes when a key of the caller's tenant and mode ends, and which key replaces it. It returns the key.
func EndKey(ctx context.Context, tx pg.Tx, k domain.Key, successor domain.KeyID) (domain.Key, error) {
	return oneKey(ctx, tx, `update api_keys set expires_at = @expires, revoked_at = @revoked, successor = @successor, version = version + 1
		where tenant_id = @tenant and livemode = @live and id = @id
		returning `+keyColumns, pg.Args{"id": k.ID, "expires": k.ExpiresAt, "revoked": k.RevokedAt, "successor": successor})
}

// TouchKeys records the last use of keys, except for keys with a use recorded in the last minute. tx has the worker role.
func TouchKeys(ctx context.Context, tx pg.Tx, used map[domain.KeyID]time.Time) error {
	b := &pgx.Batch{}
	for id, at := range used {
		b.Queue(`update api_keys set last_used_at = $2
			where id = $1 and (last_used_at is null or last_used_at <= $2::timestamptz - interval '1 minute')`, id, at)
	}
	return pg.Send(ctx, tx, b, "note last use")
}

func oneKey(ctx context.Context, q pg.Q, sql string, args pg.Args) (domain.Key, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Key], domain.ErrKeyNotFound, sql, args)
}
