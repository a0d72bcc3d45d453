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

// stamp contains the values that the database assigns to a row.
type stamp struct {
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

const accountColumns = `a.id, a.provider, a.account, a.country, a.publishable_key, a.secret_key, a.secret_last4, a.events, a.version,
	a.created_at, a.updated_at, a.disconnected_at`

// oneAccount requires the tenant and the mode in the transaction's settings.
const oneAccount = `select ` + accountColumns + ` from gateway_accounts a where a.tenant_id = @tenant and a.livemode = @live and `

// Connected reads the connected account, or returns domain.ErrNotConfigured.
func (s Accounts) Connected(ctx context.Context, q pg.Q) (domain.Account, error) {
	return pg.One(ctx, q, s.scan(ctx), domain.ErrNotConfigured, oneAccount+`a.disconnected_at is null`, pg.Args{})
}

// Shown reads the connected account without its secret key, which possibly no encryption key can open.
func (s Accounts) Shown(ctx context.Context, q pg.Q) (domain.Account, error) {
	return pg.One(ctx, q, scanSealed, domain.ErrNotConfigured, oneAccount+`a.disconnected_at is null`, pg.Args{})
}

// ConnectedForUpdate is Shown with a lock until the transaction ends.
func (s Accounts) ConnectedForUpdate(ctx context.Context, tx pg.Tx) (domain.Account, error) {
	return pg.One(ctx, tx, scanSealed, domain.ErrNotConfigured, oneAccount+`a.disconnected_at is null for update`, pg.Args{})
}

// DisconnectedForUpdate reads the last disconnected row of an account of the gateway, without its secret key, or returns
// domain.ErrNotConfigured. The row is locked until the transaction ends.
func (s Accounts) DisconnectedForUpdate(ctx context.Context, tx pg.Tx, account string) (domain.Account, error) {
	return pg.One(ctx, tx, scanSealed, domain.ErrNotConfigured, oneAccount+`a.account = @account and a.disconnected_at is not null
		order by a.disconnected_at desc limit 1 for update`, pg.Args{"account": account})
}

// ForUpdate reads an account by its id, without its secret key, or returns domain.ErrNotConfigured. signed reports whether the
// account has a secret that signs its webhooks. The account is locked until the transaction ends.
func (s Accounts) ForUpdate(ctx context.Context, tx pg.Tx, id domain.AccountID) (a domain.Account, signed bool, err error) {
	args := pg.Args{"id": id}
	if a, err = pg.One(ctx, tx, scanSealed, domain.ErrNotConfigured, oneAccount+`a.id = @id for update`, args); err != nil {
		return domain.Account{}, false, err
	}
	signed, err = pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, `select exists (select from gateway_webhook_secrets w
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @id and w.expires_at is null)`, args)
	return a, signed, err
}

// Account reads a connected or disconnected account by its id, or returns domain.ErrNotConfigured.
func (s Accounts) Account(ctx context.Context, q pg.Q, id domain.AccountID) (domain.Account, error) {
	return pg.One(ctx, q, s.scan(ctx), domain.ErrNotConfigured, oneAccount+`a.id = @id`, pg.Args{"id": id})
}

func (s Accounts) scan(ctx context.Context) pgx.RowToFunc[domain.Account] {
	return func(row pgx.CollectableRow) (domain.Account, error) {
		a, sealed, err := scanAccount(row)
		if err != nil {
			return domain.Account{}, err
		}
		plain, err := s.Box.Open(sealed, accountAAD(ctx, a.ID))
		if err != nil {
			return domain.Account{}, fmt.Errorf("secret key of %s: %w", a.ID, err)
		}
		a.SecretKey = domain.Secret(plain)
		return a, nil
	}
}

func scanSealed(row pgx.CollectableRow) (domain.Account, error) {
	a, _, err := scanAccount(row)
	return a, err
}

// scanAccount reads an account and its secret key as stored.
func scanAccount(row pgx.CollectableRow) (a domain.Account, sealed []byte, err error) {
	err = row.Scan(&a.ID, &a.Provider, &a.Account, &a.Country, &a.PublishableKey, &sealed, &a.SecretLast4, &a.Events, &a.Version,
		&a.CreatedAt, &a.UpdatedAt, &a.DisconnectedAt)
	if err != nil {
		return domain.Account{}, nil, fmt.Errorf("scan gateway account: %w", err)
	}
	return a, sealed, nil
}

// Insert writes a new account.
func (s Accounts) Insert(ctx context.Context, tx pg.Tx, a domain.Account) (domain.Account, error) {
	sealed, err := s.Box.Seal([]byte(a.SecretKey), accountAAD(ctx, a.ID))
	if err != nil {
		return domain.Account{}, err
	}
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], pgx.ErrNoRows, `
		insert into gateway_accounts as a (tenant_id, livemode, id, provider, account, country, publishable_key, secret_key, secret_last4,
			events, created_at, updated_at)
		values (@tenant, @live, @id, @provider, @account, @country, @publishable, @sealed, @last4, @events, clock_timestamp(), clock_timestamp())
		returning a.version, a.created_at, a.updated_at`, pg.Args{
		"id": a.ID, "provider": a.Provider, "account": a.Account, "country": a.Country, "publishable": a.PublishableKey,
		"sealed": sealed, "last4": a.SecretLast4, "events": a.Events,
	})
	if err != nil {
		return domain.Account{}, fmt.Errorf("insert gateway account: %w", err)
	}
	a.Version, a.CreatedAt, a.UpdatedAt = at.Version, at.CreatedAt, at.UpdatedAt
	return a, nil
}

// Update writes the keys of an account that the transaction has locked, whether its events arrive, and whether it is connected. An
// empty secret key stays unchanged.
func (s Accounts) Update(ctx context.Context, tx pg.Tx, a domain.Account) (domain.Account, error) {
	var sealed []byte
	if a.SecretKey != "" {
		var err error
		if sealed, err = s.Box.Seal([]byte(a.SecretKey), accountAAD(ctx, a.ID)); err != nil {
			return domain.Account{}, err
		}
	}
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], pgx.ErrNoRows, `
		update gateway_accounts a set country = @country, publishable_key = @publishable, secret_key = coalesce(@sealed, a.secret_key), secret_last4 = @last4,
			events = @events, disconnected_at = @disconnected_at, version = a.version + 1, updated_at = clock_timestamp()
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id
		returning a.version, a.created_at, a.updated_at`, pg.Args{
		"id": a.ID, "country": a.Country, "publishable": a.PublishableKey, "sealed": sealed, "last4": a.SecretLast4,
		"events": a.Events, "disconnected_at": a.DisconnectedAt,
	})
	if err != nil {
		return domain.Account{}, fmt.Errorf("update gateway account: %w", err)
	}
	a.Version, a.UpdatedAt = at.Version, at.UpdatedAt
	return a, nil
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
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write webhook secret: %w", err)
	}
	return nil
}

// WebhookSecrets reads the secrets with which an account's webhooks can be signed now. It omits a secret that no encryption key
// opens, unless there is no other.
func (s Accounts) WebhookSecrets(ctx context.Context, q pg.Q, id domain.AccountID, now time.Time) ([]domain.Secret, error) {
	rows, err := pg.Many(ctx, q, func(row pgx.CollectableRow) (w webhookSecret, err error) {
		err = row.Scan(&w.id, &w.sealed)
		return w, err
	}, `select w.id, w.sealed from gateway_webhook_secrets w
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @account and (w.expires_at is null or w.expires_at > @now)
		order by w.id desc limit 10`, pg.Args{"account": id, "now": now})
	if err != nil {
		return nil, err
	}
	var secrets []domain.Secret
	var errs []error
	for _, w := range rows {
		plain, err := s.Box.Open(w.sealed, secretAAD(ctx, w.id))
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook secret %s of %s: %w", w.id, id, err))
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
	id     domain.SecretID
	sealed []byte
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
