package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/migrations"
)

// previous runs the statements of the version that stored the key in columns of payment_intents and refunds.
type previous struct {
	*testing.T

	ctx     context.Context
	tx      func(ctx context.Context, do func(ctx context.Context, tx pg.Tx) error) error
	account domain.AccountID
	now     time.Time
}

// connect writes the account of the intents.
func (p previous) connect() {
	p.Helper()
	p.run(func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into gateway_accounts (tenant_id, livemode, id, provider, account, country, publishable_key, secret_key, secret_last4,
			created_at, updated_at) values (@tenant, @live, @id, 'stripe', 'acct_1', 'US', '', '', '', now(), now())`, pg.Args{"id": p.account})
		return err
	})
}

var printed = bytes.Repeat([]byte{7}, 32) // fingerprint

func (p previous) run(do func(ctx context.Context, tx pg.Tx) error) {
	p.Helper()
	if err := p.tx(p.ctx, do); err != nil {
		p.Fatal(err)
	}
}

// claim claims a key, or takes over a claim of the same request.
func (p previous) claim(ctx context.Context, tx pg.Tx, key string) error {
	c := caller.FromContext(ctx)
	_, err := tx.Exec(ctx, `
		insert into idempotency_keys as k (tenant_id, livemode, credential_id, key, fingerprint, expires_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, livemode, credential_id, key) do update
		set fingerprint = excluded.fingerprint, expires_at = excluded.expires_at,
		    status = null, body = null, location = '', etag = '', resource_id = '', secret = false
		where k.expires_at <= $7 or (k.status is null and k.fingerprint = excluded.fingerprint)`,
		c.Tenant, c.Live(), c.Credential, key, printed, p.now.Add(24*time.Hour), p.now)
	return err
}

// begin claims the key and writes the row.
func (p previous) begin(table, key string) (id domain.IntentID) {
	p.Helper()
	id = ids.New[domain.IntentPrefix]()
	p.run(func(ctx context.Context, tx pg.Tx) error {
		return errors.Join(p.claim(ctx, tx, key), p.insert(ctx, tx, table, key, id))
	})
	return id
}

// insert writes a row. The current version writes it without a key.
func (p previous) insert(ctx context.Context, tx pg.Tx, table, key string, id domain.IntentID) error {
	args := pg.Args{"id": id, "account": p.account, "key": key, "credential": "", "fingerprint": nil}
	if key != "" {
		args["credential"], args["fingerprint"] = caller.FromContext(ctx).Credential, printed
	}
	sql := `insert into refunds (tenant_id, livemode, id, status, amount, currency, reason, booking_id, credential_id, key, fingerprint, leased_until,
			created_at, updated_at)
		values (@tenant, @live, @id, 'creating', 1, 'USD', 'duplicate', @id, nullif(@credential, ''), nullif(@key, ''), @fingerprint, now(), now(), now())`
	if table == "payment_intents" {
		sql = `insert into payment_intents (tenant_id, livemode, id, account_id, status, amount, currency, booking_id, capture_method, credential_id, key,
				fingerprint, attempt, attempted_at, leased_until, created_at, updated_at)
			values (@tenant, @live, @id, @account, 'creating', 1, 'USD', @id, 'automatic', nullif(@credential, ''), nullif(@key, ''),
				@fingerprint, 1, now(), now(), now(), now())`
	}
	_, err := tx.Exec(ctx, sql, args)
	return err
}

// write updates the row.
func (p previous) write(ctx context.Context, tx pg.Tx, table, set string, id domain.IntentID) error {
	_, err := tx.Exec(ctx, `update `+table+` set `+set+` where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
	return err
}

// finds returns the row with the key, or the zero id if there is none.
func (p previous) finds(table, key string) (id domain.IntentID) {
	p.Helper()
	p.run(func(ctx context.Context, tx pg.Tx) (err error) {
		id, err = pg.One(ctx, tx, pgx.RowTo[domain.IntentID], nil, `select id from `+table+` where tenant_id = @tenant and livemode = @live
			and credential_id = @credential and key = @key`, pg.Args{"key": key, "credential": caller.FromContext(ctx).Credential})
		return err
	})
	return id
}

func operation(id domain.IntentID) string {
	if id.IsZero() {
		return ""
	}
	return fmt.Sprintf("%x", id.UUID())
}

// TestPreviousVersionConcurrently checks that, while two versions run, each finds what the other has begun with a key.
func TestPreviousVersionConcurrently(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Test)
	p := previous{T: t, ctx: ctx, tx: db.App.Tx, account: ids.New[domain.AccountPrefix](), now: time.Now()}
	s := &idemstore.Store{DB: db.App, Now: func() time.Time { return p.now }}
	p.connect()
	claims := func(what, key string, want domain.IntentID, then func(ctx context.Context, tx pg.Tx) error) {
		t.Helper()
		keyed := idem.WithRequest(ctx, idem.Request{Key: key, Fingerprint: [32]byte(printed)})
		err := db.App.Tx(keyed, func(ctx context.Context, tx pg.Tx) error {
			got, _, err := s.Claim(ctx, tx)
			if got != operation(want) {
				t.Errorf("%s: the key has operation %q, want %q", what, got, operation(want))
			}
			if err != nil || then == nil {
				return err
			}
			return then(ctx, tx)
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, table := range []string{"payment_intents", "refunds"} {
		began := p.begin(table, table+"begun")
		claims("begun", table+"begun", began, nil)
		p.run(func(ctx context.Context, tx pg.Tx) error { return p.claim(ctx, tx, table+"begun") })
		claims("claimed again", table+"begun", began, nil)
		p.run(func(ctx context.Context, tx pg.Tx) error { return p.write(ctx, tx, table, "status = 'refused'", began) })
		p.run(func(ctx context.Context, tx pg.Tx) error {
			return errors.Join(p.claim(ctx, tx, table+"begun"), p.write(ctx, tx, table, "status = 'creating', leased_until = now()", began))
		})
		claims("begun again after a refusal", table+"begun", began, nil)

		mine := ids.New[domain.IntentPrefix]()
		create := func(ctx context.Context, tx pg.Tx) error {
			s.Begin(ctx, tx, operation(mine))
			return p.insert(ctx, tx, table, "", mine)
		}
		claims("of this version", table+"mine", domain.IntentID{}, create)
		if got := p.finds(table, table+"mine"); got != mine {
			t.Errorf("%s: the previous version finds %s, want %s", table, got, mine)
		}
		p.run(func(ctx context.Context, tx pg.Tx) error { return p.claim(ctx, tx, table+"mine") })
		claims("claimed by the previous version", table+"mine", mine, nil)

		first := mine
		p.now, mine = p.now.Add(25*time.Hour), ids.New[domain.IntentPrefix]()
		claims("expired", table+"mine", domain.IntentID{}, create)
		if got := p.finds(table, table+"mine"); got != mine || got == first {
			t.Errorf("%s: the previous version finds %s after the key has expired, want %s", table, got, mine)
		}
		if table == "refunds" {
			p.run(func(ctx context.Context, tx pg.Tx) error { return p.write(ctx, tx, table, "status = 'refused'", mine) })
			if got := p.finds(table, table+"mine"); !got.IsZero() {
				t.Errorf("the previous version finds the refused refund %s", got)
			}
		}
		p.now = p.now.Add(25 * time.Hour)
		p.run(func(ctx context.Context, tx pg.Tx) error { return p.claim(ctx, tx, table+"begun") })
		claims("expired and claimed by the previous version", table+"begun", domain.IntentID{}, nil)
	}
}

// TestKeysOfUnansweredPayments checks that the migration stores in the records of keys what the previous version began but did not
// complete.
func TestKeysOfUnansweredPayments(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, through(t, 11))
	ctx := pgtest.Ctx(t, caller.Live)
	p := previous{T: t, ctx: ctx, tx: db.App.Tx, account: ids.New[domain.AccountPrefix](), now: time.Now()}
	p.connect()
	want := map[string]domain.IntentID{}
	for _, table := range []string{"payment_intents", "refunds"} {
		change := func(id domain.IntentID, sets ...string) {
			t.Helper()
			for _, set := range sets {
				p.run(func(ctx context.Context, tx pg.Tx) error { return p.write(ctx, tx, table, set, id) })
			}
		}
		begin := func(name string, sets ...string) domain.IntentID {
			t.Helper()
			id := p.begin(table, table+name)
			change(id, sets...)
			return id
		}
		forget := func(name string) {
			t.Helper()
			p.run(func(ctx context.Context, tx pg.Tx) error {
				_, err := tx.Exec(ctx, `delete from idempotency_keys where tenant_id = @tenant and livemode = @live and key = @key`, pg.Args{"key": table + name})
				return err
			})
		}
		want[table+"creating"] = begin("creating")
		want[table+"without record"] = begin("without record")
		forget("without record")
		want[table+"creating for days"] = begin("creating for days", "created_at = now() - interval '3 days'")
		forget("creating for days")
		want[table+"refused"] = domain.IntentID{}
		begin("refused", "status = 'refused', leased_until = null")
		want[table+"ended long ago"] = domain.IntentID{}
		begin("ended long ago", "created_at = now() - interval '25 hours', leased_until = null")
		forget("ended long ago")
		begin("answered", "leased_until = null")
		p.run(func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `update idempotency_keys set status = 201, resource_id = 'public'
				where tenant_id = @tenant and livemode = @live and key = @key`, pg.Args{"key": table + "answered"})
			return err
		})
	}
	for range 2 { // it can be interrupted and run again
		if err := pg.Migrate(t.Context(), db.OwnerURL, through(t, 12), pgtest.Roles()); err != nil {
			t.Fatal(err)
		}
		p.run(func(ctx context.Context, tx pg.Tx) error {
			for key, id := range want {
				got, err := pg.One(ctx, tx, pgx.RowTo[string], nil, `select resource_id from idempotency_keys
					where tenant_id = @tenant and livemode = @live and key = @key and expires_at > now()`, pg.Args{"key": key})
				if err != nil || got != operation(id) {
					t.Errorf("%s: operation %q, want %q (%v)", key, got, operation(id), err)
				}
			}
			for _, table := range []string{"payment_intents", "refunds"} {
				got, err := pg.One(ctx, tx, pgx.RowTo[string], nil, `select resource_id from idempotency_keys
					where tenant_id = @tenant and livemode = @live and key = @key`, pg.Args{"key": table + "answered"})
				if err != nil || got != "public" {
					t.Errorf("%s: the completed key has %q (%v)", table, got, err)
				}
			}
			return nil
		})
		forgetMigration(t, db)
	}
}

// through returns the migrations up to a number.
func through(t *testing.T, last int) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name >= fmt.Sprintf("%05d", last+1) {
			continue
		}
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		up := []byte("-- +goose Up\n") // the owner of a test's database cannot create anything
		out[name] = &fstest.MapFile{Data: bytes.Replace(text, up, append(up, "grant create on schema public to current_user;\n"...), 1)}
	}
	return out
}

// forgetMigration lets the next Migrate run the last migration again.
func forgetMigration(t *testing.T, db *pgtest.DB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `delete from schema_service where version_id = 12`); err != nil {
		t.Fatal(err)
	}
}
