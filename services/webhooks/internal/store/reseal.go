package store

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/reseal"

	"holdfast.dev/services/webhooks/internal/domain"
)

// sealedSecret is a stored endpoint secret.
type sealedSecret struct {
	Tenant   ids.Tenant `db:"tenant_id"`
	Livemode bool
	Endpoint domain.EndpointID `db:"endpoint_id"`
	ID       domain.SecretID
	Sealed   []byte
}

// ResealSecrets seals the secrets of all endpoints under the first key of box. db has the worker role.
func ResealSecrets(ctx context.Context, db *pg.DB, box *crypt.Box, out io.Writer) error {
	return reseal.Run(ctx, db, box, reseal.Column[sealedSecret]{
		Name: "endpoint_secrets", Next: nextSecrets, Put: putSecrets,
		Sealed: func(s sealedSecret) (text, aad []byte, name string) {
			return s.Sealed, secretAAD(s.Tenant, s.Livemode, s.ID), fmt.Sprintf("%s of %s", s.ID, s.Endpoint)
		},
	}, out)
}

// nextSecrets locks and reads up to limit secrets after the given one that are not sealed under the key in head.
func nextSecrets(ctx context.Context, tx pg.Tx, head []byte, after *sealedSecret, limit int) ([]sealedSecret, error) {
	if after == nil {
		after = &sealedSecret{} // no id is zero
	}
	return pg.Many(ctx, tx, pgx.RowToStructByName[sealedSecret], `
		select tenant_id, livemode, endpoint_id, id, sealed from endpoint_secrets
		where substring(sealed for $1) <> $2 and (tenant_id, livemode, endpoint_id, id) > ($3, $4, $5, $6)
		order by tenant_id, livemode, endpoint_id, id limit $7 for update`,
		len(head), head, after.Tenant.UUID(), after.Livemode, after.Endpoint.UUID(), after.ID.UUID(), limit)
}

// putSecrets writes resealed secrets.
func putSecrets(ctx context.Context, tx pg.Tx, list []sealedSecret, texts [][]byte) error {
	b := &pgx.Batch{}
	for i, s := range list {
		b.Queue(`update endpoint_secrets set sealed = $5 where tenant_id = $1 and livemode = $2 and endpoint_id = $3 and id = $4`,
			s.Tenant, s.Livemode, s.Endpoint, s.ID, texts[i])
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	return nil
}
