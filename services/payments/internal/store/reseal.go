package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/reseal"

	"holdfast.dev/services/payments/internal/domain"
)

// sealed is a secret of a gateway account as stored: its key, or one of the secrets that sign its events.
type sealed struct {
	Tenant   ids.Tenant `db:"tenant_id"`
	Livemode bool
	Account  domain.AccountID `db:"account_id"`
	ID       domain.SecretID  // zero: the account's key
	Text     []byte
}

func (s sealed) aad() []byte {
	mode := caller.ModeOf(s.Livemode)
	if s.ID.IsZero() {
		return aad(accountsTable, s.Tenant, mode, s.Account.String())
	}
	return aad(secretsTable, s.Tenant, mode, s.ID.String())
}

// ResealKeys seals the secret keys of all gateway accounts, including disconnected ones, and the secrets that sign their events,
// with the first key of box. db has the worker role.
func ResealKeys(ctx context.Context, db *pg.DB, box *crypt.Box, out io.Writer) error {
	return errors.Join(
		reseal.Run(ctx, db, box, reseal.Column[sealed]{
			Name: accountsTable, Next: nextKeys, Put: putKeys,
			Sealed: func(s sealed) (text, aad []byte, name string) {
				return s.Text, s.aad(), "the key of " + s.Account.String()
			},
		}, out),
		reseal.Run(ctx, db, box, reseal.Column[sealed]{
			Name: secretsTable, Next: nextWebhookSecrets, Put: putWebhookSecrets,
			Sealed: func(s sealed) (text, aad []byte, name string) {
				return s.Text, s.aad(), fmt.Sprintf("%s of %s", s.ID, s.Account)
			},
		}, out),
	)
}

// nextKeys locks and reads up to limit accounts after the given one whose keys are not sealed with the key that head names.
func nextKeys(ctx context.Context, tx pg.Tx, head []byte, after *sealed, limit int) ([]sealed, error) {
	if after == nil {
		after = &sealed{} // no id is zero
	}
	return pg.Many(ctx, tx, pgx.RowToStructByName[sealed], `
		select tenant_id, livemode, id as account_id, null::uuid as id, secret_key as text from gateway_accounts
		where substring(secret_key for $1) <> $2 and (tenant_id, livemode, gateway_accounts.id) > ($3, $4, $5)
		order by tenant_id, livemode, gateway_accounts.id limit $6 for update`,
		len(head), head, after.Tenant.UUID(), after.Livemode, after.Account.UUID(), limit)
}

func putKeys(ctx context.Context, tx pg.Tx, list []sealed, texts [][]byte) error {
	b := &pgx.Batch{}
	for i, s := range list {
		b.Queue(`update gateway_accounts set secret_key = $4 where tenant_id = $1 and livemode = $2 and id = $3`, s.Tenant, s.Livemode, s.Account, texts[i])
	}
	return pg.Send(ctx, tx, b, "write keys")
}

// nextWebhookSecrets locks and reads up to limit secrets after the given one that are not sealed with the key that head names.
func nextWebhookSecrets(ctx context.Context, tx pg.Tx, head []byte, after *sealed, limit int) ([]sealed, error) {
	if after == nil {
		after = &sealed{} // no id is zero
	}
	return pg.Many(ctx, tx, pgx.RowToStructByName[sealed], `
		select tenant_id, livemode, account_id, id, sealed as text from gateway_webhook_secrets
		where substring(sealed for $1) <> $2 and (tenant_id, livemode, account_id, id) > ($3, $4, $5, $6)
		order by tenant_id, livemode, account_id, id limit $7 for update`,
		len(head), head, after.Tenant.UUID(), after.Livemode, after.Account.UUID(), after.ID.UUID(), limit)
}

func putWebhookSecrets(ctx context.Context, tx pg.Tx, list []sealed, texts [][]byte) error {
	b := &pgx.Batch{}
	for i, s := range list {
		b.Queue(`update gateway_webhook_secrets set sealed = $5 where tenant_id = $1 and livemode = $2 and account_id = $3 and id = $4`,
			s.Tenant, s.Livemode, s.Account, s.ID, texts[i])
	}
	return pg.Send(ctx, tx, b, "write webhook secrets")
}
