package store

import (
	"context"
	"errors"
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

// sealedHeaders are the stored headers of an endpoint.
type sealedHeaders struct {
	keyRow

	Sealed []byte
}

// ResealSecrets seals the secrets and the headers of all endpoints under the first key of box. It processes both even if one contains
// a text that no key opens. db has the worker role.
func ResealSecrets(ctx context.Context, db *pg.DB, box *crypt.Box, out io.Writer) error {
	return errors.Join(
		reseal.Run(ctx, db, box, reseal.Column[sealedSecret]{
			Name: "endpoint_secrets", Next: nextSecrets, Put: putSecrets,
			Sealed: func(s sealedSecret) (text, aad []byte, name string) {
				return s.Sealed, secretAAD(s.Tenant, s.Livemode, s.ID), fmt.Sprintf("%s of %s", s.ID, s.Endpoint)
			},
		}, out),
		reseal.Run(ctx, db, box, reseal.Column[sealedHeaders]{
			Name: "endpoints.sealed_headers", Next: nextHeaders, Put: putHeaders,
			Sealed: func(h sealedHeaders) (text, aad []byte, name string) {
				return h.Sealed, headersAAD(h.key()), h.EndpointID.String()
			},
		}, out))
}

// nextHeaders locks and reads up to limit headers after the given ones that are not sealed under the key in head.
func nextHeaders(ctx context.Context, tx pg.Tx, head []byte, after *sealedHeaders, limit int) ([]sealedHeaders, error) {
	if after == nil {
		after = &sealedHeaders{} // no id is zero
	}
	return pg.Many(ctx, tx, pgx.RowToStructByName[sealedHeaders], `
		select tenant_id, livemode, id as endpoint_id, sealed_headers as sealed from endpoints
		where sealed_headers is not null and substring(sealed_headers for $1) <> $2 and (tenant_id, livemode, id) > ($3, $4, $5)
		order by tenant_id, livemode, id limit $6 for no key update`,
		len(head), head, after.TenantID.UUID(), after.Livemode, after.EndpointID.UUID(), limit)
}

// putHeaders writes resealed headers.
func putHeaders(ctx context.Context, tx pg.Tx, list []sealedHeaders, texts [][]byte) error {
	b := &pgx.Batch{}
	for i, h := range list {
		b.Queue(`update endpoints set sealed_headers = $4 where tenant_id = $1 and livemode = $2 and id = $3`, h.TenantID, h.Livemode, h.EndpointID, texts[i])
	}
	return pg.Send(ctx, tx, b, "write headers")
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
	return pg.Send(ctx, tx, b, "write secrets")
}
