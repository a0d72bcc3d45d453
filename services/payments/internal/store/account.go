// Package store reads and writes this service's tables.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// Accounts reads and writes gateway accounts. Box seals their secrets.
type Accounts struct{ Box *crypt.Box }

// storedAccount is an account with its secret key as stored.
type storedAccount struct {
	domain.Account

	Sealed []byte
}

var accounts = pg.NewTable("gateway_accounts", "a", domain.ErrNotConfigured, func(a *storedAccount) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &a.ID, "provider", &a.Provider, "account", &a.Account.Account, "secret_key", &a.Sealed},
		Values: pg.F{
			"country", &a.Country, "publishable_key", &a.PublishableKey, "secret_last4", &a.SecretLast4, "events", &a.Events,
			"disconnected_at", &a.DisconnectedAt,
		},
		Read: pg.F{"version", &a.Version, "created_at", &a.CreatedAt, "updated_at", &a.UpdatedAt},
	}
})

// Connected reads the connected account, or returns domain.ErrNotConfigured.
func (s Accounts) Connected(ctx context.Context, q pg.Q) (domain.Account, error) {
	return pg.One(ctx, q, s.scan(ctx), domain.ErrNotConfigured, accounts.Own+`a.disconnected_at is null`, pg.Args{})
}

// Shown reads the connected account without its secret key, which possibly no encryption key can open.
func (s Accounts) Shown(ctx context.Context, q pg.Q) (domain.Account, error) {
	return pg.One(ctx, q, scanSealed, domain.ErrNotConfigured, accounts.Own+`a.disconnected_at is null`, pg.Args{})
}

// ConnectedForUpdate is Shown with a lock until the transaction ends.
func (s Accounts) ConnectedForUpdate(ctx context.Context, tx pg.Tx) (domain.Account, error) {
	return pg.One(ctx, tx, scanSealed, domain.ErrNotConfigured, accounts.Own+`a.disconnected_at is null for update`, pg.Args{})
}

// DisconnectedForUpdate reads the last disconnected row of an account of the gateway, without its secret key, or returns
// domain.ErrNotConfigured. The row is locked until the transaction ends.
func (s Accounts) DisconnectedForUpdate(ctx context.Context, tx pg.Tx, account string) (domain.Account, error) {
	return pg.One(ctx, tx, scanSealed, domain.ErrNotConfigured, accounts.Own+`a.account = @account and a.disconnected_at is not null
		order by a.disconnected_at desc limit 1 for update`, pg.Args{"account": account})
}

// ForUpdate reads an account by its id, without its secret key, or returns domain.ErrNotConfigured. signed reports whether the
// account has a secret that signs its webhooks. The account is locked until the transaction ends.
func (s Accounts) ForUpdate(ctx context.Context, tx pg.Tx, id domain.AccountID) (a domain.Account, signed bool, err error) {
	args := pg.Args{"id": id}
	if a, err = pg.One(ctx, tx, scanSealed, domain.ErrNotConfigured, accounts.Own+`a.id = @id for update`, args); err != nil {
		return domain.Account{}, false, err
	}
	signed, err = pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, `select exists (select from gateway_webhook_secrets w
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @id and w.expires_at is null)`, args)
	return a, signed, err
}

// Account reads a connected or disconnected account by its id, or returns domain.ErrNotConfigured.
func (s Accounts) Account(ctx context.Context, q pg.Q, id domain.AccountID) (domain.Account, error) {
	return pg.One(ctx, q, s.scan(ctx), domain.ErrNotConfigured, accounts.Own+`a.id = @id`, pg.Args{"id": id})
}

func (s Accounts) scan(ctx context.Context) pgx.RowToFunc[domain.Account] {
	return func(row pgx.CollectableRow) (domain.Account, error) {
		a, err := accounts.Scan(row)
		if err != nil {
			return domain.Account{}, err
		}
		plain, err := s.Box.Open(a.Sealed, accountAAD(ctx, a.ID))
		if err != nil {
			return domain.Account{}, fmt.Errorf("secret key of %s: %w", a.ID, err)
		}
		a.SecretKey = domain.Secret(plain)
		return a.Account, nil
	}
}

func scanSealed(row pgx.CollectableRow) (domain.Account, error) {
	a, err := accounts.Scan(row)
	return a.Account, err
}

var (
	insertAccount = accounts.InsertNow("") + accounts.Stamp
	updateAccount = accounts.UpdateWith(`secret_key = coalesce(@secret_key, a.secret_key), version = a.version + 1, updated_at = clock_timestamp()`) +
		accounts.Stamp
)

// Insert writes a new account.
func (s Accounts) Insert(ctx context.Context, tx pg.Tx, a domain.Account) (domain.Account, error) {
	return s.write(ctx, tx, insertAccount, a)
}

// Update writes the keys of an account that the transaction has locked, whether its events arrive, and whether it is connected. An
// empty secret key stays unchanged.
func (s Accounts) Update(ctx context.Context, tx pg.Tx, a domain.Account) (domain.Account, error) {
	return s.write(ctx, tx, updateAccount, a)
}

func (s Accounts) write(ctx context.Context, tx pg.Tx, sql string, a domain.Account) (domain.Account, error) {
	stored := storedAccount{Account: a}
	if a.SecretKey != "" {
		var err error
		if stored.Sealed, err = s.Box.Seal([]byte(a.SecretKey), accountAAD(ctx, a.ID)); err != nil {
			return domain.Account{}, err
		}
	}
	b := &pgx.Batch{}
	b.Queue(sql, accounts.Args(stored)).QueryRow(pg.Into(&a.Version, &a.CreatedAt, &a.UpdatedAt))
	return pg.SendFor(ctx, tx, b, "write gateway account", &a)
}

// AddWebhookSecret writes the current secret of an account's webhooks. The previous ones expire at the given time.
func (s Accounts) AddWebhookSecret(ctx context.Context, tx pg.Tx, id domain.AccountID, secret domain.Secret, end time.Time) error {
	row := ids.New[domain.SecretPrefix]()
	sealed, err := s.Box.Seal([]byte(secret), secretAAD(ctx, row))
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	args := pg.Args{"account": id, "id": row, "sealed": sealed, "last4": domain.Last4(string(secret)), "end": end}
	b.Queue(`delete from gateway_webhook_secrets w
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @account and w.expires_at <= clock_timestamp()`, args)
	b.Queue(`update gateway_webhook_secrets w set expires_at = least(w.expires_at, @end)
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @account`, args)
	b.Queue(`insert into gateway_webhook_secrets (tenant_id, livemode, account_id, id, sealed, last4)
		values (@tenant, @live, @account, @id, @sealed, @last4)`, args)
	return pg.Send(ctx, tx, b, "write webhook secret")
}

// WebhookSecrets reads the secrets with which an account's webhooks can be signed now. It omits a secret that no encryption key
// opens, unless there is no other.
func (s Accounts) WebhookSecrets(ctx context.Context, q pg.Q, id domain.AccountID, now time.Time) ([]domain.Secret, error) {
	rows, err := pg.Many(ctx, q, pgx.RowToStructByPos[webhookSecret], `select w.id, w.sealed from gateway_webhook_secrets w
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @account and (w.expires_at is null or w.expires_at > @now)
		order by w.id desc limit 10`, pg.Args{"account": id, "now": now})
	if err != nil {
		return nil, err
	}
	var secrets []domain.Secret
	var errs []error
	for _, w := range rows {
		plain, err := s.Box.Open(w.Sealed, secretAAD(ctx, w.ID))
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook secret %s of %s: %w", w.ID, id, err))
			continue
		}
		secrets = append(secrets, domain.Secret(plain))
	}
	if len(secrets) == 0 {
		return nil, errors.Join(errs...)
	}
	return secrets, nil
}

// webhookSecret is a secret as stored.
type webhookSecret struct {
	ID     domain.SecretID
	Sealed []byte
}

// OwnerOf returns the tenant and mode of an account. ok is false if there is none.
func OwnerOf(ctx context.Context, q pg.Q, id domain.AccountID) (tenant ids.Tenant, mode caller.Mode, ok bool, err error) {
	got, err := pg.One(ctx, q, pgx.RowToStructByName[operation.Owner], pgx.ErrNoRows,
		`select tenant_id, livemode from gateway_account_home($1)`, id.UUID())
	if errors.Is(err, pgx.ErrNoRows) {
		return ids.Tenant{}, "", false, nil
	}
	return got.TenantID, caller.ModeOf(got.Livemode), err == nil, err
}

const (
	accountsTable = "gateway_accounts"
	secretsTable  = "gateway_webhook_secrets"
)

func accountAAD(ctx context.Context, id domain.AccountID) []byte {
	c := caller.FromContext(ctx)
	return aad(accountsTable, c.Tenant, c.Mode, id.String())
}

func secretAAD(ctx context.Context, id domain.SecretID) []byte {
	c := caller.FromContext(ctx)
	return aad(secretsTable, c.Tenant, c.Mode, id.String())
}

// aad returns the additional data that binds a sealed text to its row.
func aad(table string, tenant ids.Tenant, mode caller.Mode, id string) []byte {
	return fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", table, tenant, mode, id)
}
