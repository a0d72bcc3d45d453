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
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// Accounts reads and writes gateway accounts; Box seals their secrets.
type Accounts struct{ Box *crypt.Box }

// stamp is what the database gives a row.
type stamp struct {
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

const accountColumns = `a.id, a.provider, a.account, a.country, a.publishable_key, a.secret_key, a.secret_last4, a.version, a.created_at,
	a.updated_at, a.disconnected_at`

const oneAccount = `select ` + accountColumns + ` from gateway_accounts a where a.tenant_id = @tenant and a.livemode = @live and `

// Connected reads the account that is connected, or domain.ErrNotConfigured.
func (s Accounts) Connected(ctx context.Context, q pg.Q) (domain.Account, error) {
	return pg.One(ctx, q, s.scan(ctx), domain.ErrNotConfigured, oneAccount+`a.disconnected_at is null`, pg.Args{})
}

// ConnectedForUpdate is Connected with a lock until the transaction ends.
func (s Accounts) ConnectedForUpdate(ctx context.Context, tx pg.Tx) (domain.Account, error) {
	return pg.One(ctx, tx, s.scan(ctx), domain.ErrNotConfigured, oneAccount+`a.disconnected_at is null for update`, pg.Args{})
}

// Account reads an account by its id, a disconnected one too, or domain.ErrNotConfigured.
func (s Accounts) Account(ctx context.Context, q pg.Q, id domain.AccountID) (domain.Account, error) {
	return pg.One(ctx, q, s.scan(ctx), domain.ErrNotConfigured, oneAccount+`a.id = @id`, pg.Args{"id": id})
}

func (s Accounts) scan(ctx context.Context) pgx.RowToFunc[domain.Account] {
	return func(row pgx.CollectableRow) (domain.Account, error) {
		var a domain.Account
		var sealed []byte
		err := row.Scan(&a.ID, &a.Provider, &a.Account, &a.Country, &a.PublishableKey, &sealed, &a.SecretLast4, &a.Version, &a.CreatedAt,
			&a.UpdatedAt, &a.DisconnectedAt)
		if err != nil {
			return domain.Account{}, fmt.Errorf("scan gateway account: %w", err)
		}
		plain, err := s.Box.Open(sealed, accountAAD(ctx, a.ID))
		if err != nil {
			return domain.Account{}, fmt.Errorf("secret key of %s: %w", a.ID, err)
		}
		a.SecretKey = domain.Secret(plain)
		return a, nil
	}
}

// Insert writes a new account.
func (s Accounts) Insert(ctx context.Context, tx pg.Tx, a domain.Account) (domain.Account, error) {
	sealed, err := s.Box.Seal([]byte(a.SecretKey), accountAAD(ctx, a.ID))
	if err != nil {
		return domain.Account{}, err
	}
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], pgx.ErrNoRows, `
		insert into gateway_accounts as a (tenant_id, livemode, id, provider, account, country, publishable_key, secret_key, secret_last4,
			created_at, updated_at)
		values (@tenant, @live, @id, @provider, @account, @country, @publishable, @sealed, @last4, clock_timestamp(), clock_timestamp())
		returning a.version, a.created_at, a.updated_at`, pg.Args{
		"id": a.ID, "provider": a.Provider, "account": a.Account, "country": a.Country, "publishable": a.PublishableKey,
		"sealed": sealed, "last4": a.SecretLast4,
	})
	if err != nil {
		return domain.Account{}, fmt.Errorf("insert gateway account: %w", err)
	}
	a.Version, a.CreatedAt, a.UpdatedAt = at.Version, at.CreatedAt, at.UpdatedAt
	return a, nil
}

// Update writes the keys of an account that the transaction has locked, and whether it is connected.
func (s Accounts) Update(ctx context.Context, tx pg.Tx, a domain.Account) (domain.Account, error) {
	sealed, err := s.Box.Seal([]byte(a.SecretKey), accountAAD(ctx, a.ID))
	if err != nil {
		return domain.Account{}, err
	}
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], pgx.ErrNoRows, `
		update gateway_accounts a set country = @country, publishable_key = @publishable, secret_key = @sealed, secret_last4 = @last4,
			disconnected_at = @disconnected_at, version = a.version + 1, updated_at = clock_timestamp()
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id
		returning a.version, a.created_at, a.updated_at`, pg.Args{
		"id": a.ID, "country": a.Country, "publishable": a.PublishableKey, "sealed": sealed, "last4": a.SecretLast4,
		"disconnected_at": a.DisconnectedAt,
	})
	if err != nil {
		return domain.Account{}, fmt.Errorf("update gateway account: %w", err)
	}
	a.Version, a.UpdatedAt = at.Version, at.UpdatedAt
	return a, nil
}

// AddWebhookSecret writes the current secret of an account's webhooks. The ones before end at a time.
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

// WebhookSecrets reads the secrets by which an account's webhooks may be signed now.
func (s Accounts) WebhookSecrets(ctx context.Context, q pg.Q, id domain.AccountID, now time.Time) ([]domain.Secret, error) {
	return pg.Many(ctx, q, func(row pgx.CollectableRow) (domain.Secret, error) {
		var secret domain.SecretID
		var sealed []byte
		if err := row.Scan(&secret, &sealed); err != nil {
			return "", err
		}
		plain, err := s.Box.Open(sealed, secretAAD(ctx, secret))
		return domain.Secret(plain), err
	}, `select w.id, w.sealed from gateway_webhook_secrets w
		where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @account and (w.expires_at is null or w.expires_at > @now)
		order by w.id desc limit 10`, pg.Args{"account": id, "now": now})
}

// Home finds whose an account is. ok is false when there is none.
func Home(ctx context.Context, q pg.Q, id domain.AccountID) (tenant ids.Tenant, mode caller.Mode, ok bool, err error) {
	type home struct {
		TenantID ids.Tenant
		Livemode bool
	}
	got, err := pg.One(ctx, q, pgx.RowToStructByName[home], pgx.ErrNoRows,
		`select tenant_id, livemode from gateway_account_home($1)`, id.UUID())
	if errors.Is(err, pgx.ErrNoRows) {
		return ids.Tenant{}, "", false, nil
	}
	mode = caller.Test
	if got.Livemode {
		mode = caller.Live
	}
	return got.TenantID, mode, err == nil, err
}

func accountAAD(ctx context.Context, id domain.AccountID) []byte {
	return aad(ctx, "gateway_accounts", id.String())
}

func secretAAD(ctx context.Context, id domain.SecretID) []byte {
	return aad(ctx, "gateway_webhook_secrets", id.String())
}

// aad binds a sealed text to its row.
func aad(ctx context.Context, table, id string) []byte {
	c := caller.FromContext(ctx)
	return fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", table, c.Tenant, c.Mode, id)
}
