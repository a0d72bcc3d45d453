package store

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/reseal"

	"holdfast.dev/services/identity/internal/domain"
)

// factor is the sealed secret of an operator's second factor.
type factor struct {
	ID   domain.OperatorID
	Text []byte
}

// ResealFactors encrypts the secrets of all second factors with the first key of box. db has the worker role. Tokens that a
// rotation stores for its leeway are not encrypted again, because they are deleted within seconds. Neither are drafts of forms,
// because they are deleted within an hour.
func ResealFactors(ctx context.Context, db *pg.DB, box *crypt.Box, out io.Writer) error {
	return reseal.Run(ctx, db, box, reseal.Column[factor]{
		Name: "operators",
		Sealed: func(f factor) (text, aad []byte, name string) {
			return f.Text, domain.FactorBinding(f.ID), "the second factor of " + f.ID.String()
		},
		Next: func(ctx context.Context, tx pg.Tx, head []byte, after *factor, limit int) ([]factor, error) {
			if after == nil {
				after = &factor{} // no id is zero
			}
			return pg.Many(ctx, tx, pgx.RowToStructByName[factor], `select id, totp_secret as text from operators
				where totp_secret is not null and substring(totp_secret for $1) <> $2 and id > $3 order by id limit $4 for update`,
				len(head), head, after.ID.UUID(), limit)
		},
		Put: func(ctx context.Context, tx pg.Tx, list []factor, texts [][]byte) error {
			b := &pgx.Batch{}
			for i, f := range list {
				b.Queue(`update operators set totp_secret = $2 where id = $1`, f.ID, texts[i])
			}
			return pg.Send(ctx, tx, b, "write second factors")
		},
	}, out)
}
