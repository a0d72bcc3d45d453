package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/platform"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

type storedSecret struct {
	Tenant   ids.Tenant `db:"tenant_id"`
	Livemode bool
	ID       domain.SecretID
	Sealed   []byte
}

// After the command the old key is no longer needed: every endpoint's secret opens with the new key alone, and has not changed.
func TestResealCommand(t *testing.T) {
	t.Parallel()
	const endpoints = 120
	old, fresh := "old:"+strings.Repeat("ab", 32), "new:"+strings.Repeat("cd", 32)
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	before, err := crypt.NewBox(old)
	if err != nil {
		t.Fatal(err)
	}
	for i := range endpoints {
		mode := caller.Test
		if i%2 == 0 {
			mode = caller.Live
		}
		id := ids.New[domain.EndpointPrefix]()
		err := db.App.Tx(pgtest.Ctx(t, mode), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `insert into endpoints (tenant_id, livemode, id, url, event_types, max_in_flight, max_per_second, created_at, updated_at)
				values (@tenant, @live, @id, 'u', '{*}', 10, 50, now(), now())`, pg.Args{"id": id})
			if err != nil {
				return err
			}
			if err := store.PutHeaders(ctx, tx, before, id, domain.EndpointHeaders{"X-Key": fmt.Sprint("key ", i)}); err != nil {
				return err
			}
			secret := domain.Secret{ID: ids.New[domain.SecretPrefixID](), Plain: fmt.Sprint("whsec_", i)}
			return store.InsertSecret(ctx, tx, before, id, secret)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	settings := platform.ResealSettings{WorkerDatabaseURL: db.WorkerURL, EncryptionKeys: fresh + "," + old}
	for range 2 { // the second time finds nothing to do
		if err := platform.Reseal(t.Context(), settings, store.ResealSecrets); err != nil {
			t.Fatal(err)
		}
	}
	if got := opened(t, db, fresh); len(got) != endpoints {
		t.Errorf("%d secrets open with only the new key", len(got))
	}
	if got := openedHeaders(t, db, fresh); len(got) != endpoints {
		t.Errorf("the headers of %d endpoints open with only the new key", len(got))
	}
	settings.EncryptionKeys = "other:" + strings.Repeat("ef", 32)
	if err := platform.Reseal(t.Context(), settings, store.ResealSecrets); err == nil || !strings.Contains(err.Error(), "no key opens") {
		t.Errorf("with a key that opens none: %v", err)
	}
}

// openedHeaders returns the different values of the header X-Key that the keys open.
func openedHeaders(t *testing.T, db *pgtest.DB, keys string) map[string]bool {
	t.Helper()
	box, err := crypt.NewBox(keys)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Tenant   ids.Tenant `db:"tenant_id"`
		Livemode bool
		ID       domain.EndpointID
		Sealed   []byte `db:"sealed_headers"`
	}
	out := map[string]bool{}
	err = db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		rows, err := pg.Many(ctx, tx, pgx.RowToStructByName[row], `select tenant_id, livemode, id, sealed_headers from endpoints`)
		for _, r := range rows {
			h, err := store.OpenHeaders(box, domain.EndpointKey{Tenant: r.Tenant, Livemode: r.Livemode, Endpoint: r.ID}, r.Sealed)
			if err != nil {
				t.Error(err)
			}
			out[h["X-Key"]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// opened returns the different secrets that the keys open.
func opened(t *testing.T, db *pgtest.DB, keys string) map[string]bool {
	t.Helper()
	box, err := crypt.NewBox(keys)
	if err != nil {
		t.Fatal(err)
	}
	var rows []storedSecret
	err = db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		list, err := tx.Query(ctx, `select tenant_id, livemode, id, sealed from endpoint_secrets`)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(list, pgx.RowToStructByName[storedSecret])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, r := range rows {
		key := domain.EndpointKey{Tenant: r.Tenant, Livemode: r.Livemode}
		plain, err := store.Secrets(box, key, []domain.SecretID{r.ID}, [][]byte{r.Sealed})
		if err != nil {
			t.Error(err)
			continue
		}
		out[plain[0]] = true
	}
	return out
}
