package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// InsertSecret writes a new current secret of an endpoint, sealed for its row.
func InsertSecret(ctx context.Context, tx pg.Tx, box *crypt.Box, id domain.EndpointID, s domain.Secret) error {
	c := caller.FromContext(ctx)
	sealed, err := box.Seal([]byte(s.Plain), secretAAD(c.Tenant, c.Live(), s.ID))
	if err != nil {
		return err
	}
	tx.QueueAtCommit(`insert into endpoint_secrets (tenant_id, livemode, endpoint_id, id, sealed) values (@tenant, @live, @endpoint, @id, @sealed)`,
		pg.Args{"endpoint": id, "id": s.ID, "sealed": sealed})
	return nil
}

// RetireSecrets limits the validity of the endpoint's current secrets to a time. It deletes expired secrets, and the oldest ones
// above domain.MaxSecrets.
func RetireSecrets(ctx context.Context, tx pg.Tx, id domain.EndpointID, until time.Time) error {
	b := &pgx.Batch{}
	args := pg.Args{"endpoint": id, "until": until, "kept": domain.MaxSecrets - 1}
	b.Queue(`update endpoint_secrets set expires_at = least(expires_at, @until)
		where tenant_id = @tenant and livemode = @live and endpoint_id = @endpoint`, args)
	b.Queue(`
		delete from endpoint_secrets s where s.tenant_id = @tenant and s.livemode = @live and s.endpoint_id = @endpoint
		  and (s.expires_at <= clock_timestamp() or s.id not in (
			select k.id from endpoint_secrets k where k.tenant_id = @tenant and k.livemode = @live and k.endpoint_id = @endpoint
			order by k.id desc limit @kept))`, args)
	return pg.Send(ctx, tx, b, "retire secrets")
}

// Secrets opens the sealed secrets of one endpoint, in their order.
func Secrets(box *crypt.Box, key domain.EndpointKey, rows []domain.SecretID, sealed [][]byte) ([]string, error) {
	out := make([]string, len(rows))
	for i, id := range rows {
		plain, err := box.Open(sealed[i], secretAAD(key.Tenant, key.Livemode, id))
		if err != nil {
			return nil, fmt.Errorf("secret of %s: %w", key.Endpoint, err)
		}
		out[i] = string(plain)
	}
	return out, nil
}

// SweepSecrets deletes the expired secrets. db has the worker role.
func SweepSecrets(ctx context.Context, db *pg.DB) error {
	return pg.SweepExpired(ctx, db, "endpoint_secrets")
}

// secretAAD returns the additional data that binds a sealed secret to its row.
func secretAAD(tenant ids.Tenant, livemode bool, id domain.SecretID) []byte {
	return fmt.Appendf(nil, "endpoint_secrets\x00%s\x00%t\x00%s", tenant, livemode, id)
}
