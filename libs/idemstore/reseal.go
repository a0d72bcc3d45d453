package idemstore

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/reseal"
)

// sealedResponse is a stored response that contains a secret.
type sealedResponse struct {
	Tenant     ids.Tenant `db:"tenant_id"`
	Livemode   bool
	Credential string `db:"credential_id"`
	Key        string
	Body       []byte
}

// Reseal seals the stored responses that contain a secret under the first key of box. db has the worker role.
func Reseal(ctx context.Context, db *pg.DB, box *crypt.Box, out io.Writer) error {
	return reseal.Run(ctx, db, box, reseal.Column[sealedResponse]{
		Name: "idempotency_keys", Next: nextResponses, Put: putResponses,
		Sealed: func(r sealedResponse) (text, bound []byte, name string) {
			mode := caller.ModeOf(r.Livemode)
			name = fmt.Sprintf("key %q of %s", r.Key, r.Credential)
			return r.Body, boundTo(caller.Caller{Tenant: r.Tenant, Mode: mode, Credential: r.Credential}, r.Key), name
		},
	}, out)
}

func nextResponses(ctx context.Context, tx pg.Tx, head []byte, after *sealedResponse, limit int) ([]sealedResponse, error) {
	if after == nil {
		after = &sealedResponse{} // every key sorts after the empty one
	}
	rows, err := tx.Query(ctx, `
		select tenant_id, livemode, credential_id, key, body from idempotency_keys
		where secret and body is not null and substring(body for $1) <> $2 and (tenant_id, livemode, credential_id, key) > ($3, $4, $5, $6)
		order by tenant_id, livemode, credential_id, key limit $7 for update`,
		len(head), head, after.Tenant.UUID(), after.Livemode, after.Credential, after.Key, limit)
	if err != nil {
		return nil, fmt.Errorf("read sealed responses: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[sealedResponse])
	if err != nil {
		return nil, fmt.Errorf("read sealed responses: %w", err)
	}
	return list, nil
}

func putResponses(ctx context.Context, tx pg.Tx, list []sealedResponse, texts [][]byte) error {
	b := &pgx.Batch{}
	for i, r := range list {
		b.Queue(`update idempotency_keys set body = $5 where tenant_id = $1 and livemode = $2 and credential_id = $3 and key = $4`,
			r.Tenant, r.Livemode, r.Credential, r.Key, texts[i])
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write sealed responses: %w", err)
	}
	return nil
}
