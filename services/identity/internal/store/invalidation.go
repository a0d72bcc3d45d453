package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// InvalidateKey adds the invalidation of a key of the caller's tenant and mode: domain.Revoked, or the newest version of its principal.
func InvalidateKey(ctx context.Context, tx pg.Tx, id domain.KeyID, value string) error {
	return pg.Exec(ctx, tx, "invalidate key", `insert into key_signals (tenant_id, livemode, key_id, value) values (@tenant, @live, @id, @value)
		on conflict (tenant_id, livemode, key_id) do update set value = excluded.value`,
		pg.Args{"id": id, "value": value})
}

// InvalidateTenantKeys adds an invalidation with the new version of every active key of the caller's tenant, in both modes. The
// database function reads the tenant from the settings of the transaction.
func InvalidateTenantKeys(ctx context.Context, tx pg.Tx) error {
	return pg.Exec(ctx, tx, "invalidate keys", `select signal_tenant_keys()`)
}

// InvalidatePublishedApps adds an invalidation with the new version of the grants that other tenants' operators gave to the apps of the
// caller's tenant.
func InvalidatePublishedApps(ctx context.Context, tx pg.Tx) error {
	return pg.Exec(ctx, tx, "invalidate published apps", `select signal_published_apps()`)
}

// Invalidations returns up to limit invalidations that are not in Redis yet, of one tenant or, for the zero id, of all. q has the
// worker role. Those of keys come first. after is the last one of the previous page.
func Invalidations(ctx context.Context, q pg.Q, tenant ids.Tenant, after domain.Invalidation, limit int) ([]domain.Invalidation, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Invalidation], `
		(select tenant_id, livemode, key_id, null::uuid as grant_id, value from key_signals
			where ($1::uuid is null or tenant_id = $1) and ($2::uuid is null or key_id > $2) and $3::uuid is null order by key_id limit $4)
		union all
		(select tenant_id, livemode, null::uuid, grant_id, value from grant_signals
			where ($1::uuid is null or tenant_id = $1) and ($3::uuid is null or grant_id > $3) order by grant_id limit $4)
		limit $4`, tenant, after.KeyID, after.GrantID, limit)
}

// DeleteInvalidations deletes invalidations that are in Redis, except those whose value has changed since. tx has the worker role.
func DeleteInvalidations(ctx context.Context, tx pg.Tx, published []domain.Invalidation) error {
	b := &pgx.Batch{}
	for _, s := range published {
		if s.GrantID.IsZero() {
			b.Queue(`delete from key_signals where tenant_id = $1 and livemode = $2 and key_id = $3 and value = $4`, s.TenantID, s.Livemode, s.KeyID, s.Value)
		} else {
			b.Queue(`delete from grant_signals where tenant_id = $1 and livemode = $2 and grant_id = $3 and value = $4`, s.TenantID, s.Livemode, s.GrantID, s.Value)
		}
	}
	return pg.Send(ctx, tx, b, "delete invalidations")
}

// publish keeps the stronger invalidation: a version that arrives late overwrites neither a tombstone nor a newer version. KEYS:
// the credential's state. ARGV: the value, its lifetime in seconds.
var publish = redis.NewScript(`
local old = redis.call('GET', KEYS[1])
if old and ARGV[1] ~= 'revoked' and (old == 'revoked' or tonumber(old) >= tonumber(ARGV[1])) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1`)

// Redis is where the gateways look up invalidations on every request.
type Redis struct{ Client redis.UniversalClient }

// stateKey returns the key of a credential's state that gateways read. Its hash tag is the tenant.
func stateKey(s domain.Invalidation) string {
	return "st:{" + s.TenantID.String() + "}:" + s.Credential()
}

// Publish writes the invalidations to the keys that the gateways read, in one round trip. Writing twice changes nothing.
func (r Redis) Publish(ctx context.Context, list []domain.Invalidation) error {
	pipe := r.Client.Pipeline()
	for _, s := range list {
		publish.Eval(ctx, pipe, []string{stateKey(s)}, s.Value, int(s.Lifetime().Seconds()))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("publish invalidations: %w", err)
	}
	return nil
}
