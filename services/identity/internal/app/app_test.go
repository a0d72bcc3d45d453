package app_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/proto"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

var cli = domain.Origin{Actor: "cli", Source: "cli:tester@here"}

// house is identity's use cases over a database of the test's own and the shared Redis.
type house struct {
	*app.App
	db    *pgtest.DB
	redis redis.UniversalClient
	owner *pgx.Conn
}

func newHouse(t *testing.T) *house {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	client := openRedis(t, redisURL(t))
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	return &house{db: db, redis: client, owner: owner, App: &app.App{
		DB: db.App, Worker: db.Worker, Redis: store.Redis{Client: client}, Scopes: proto.Scopes,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}}
}

func redisURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("TEST_REDIS_URL")
	if url == "" {
		t.Fatal("TEST_REDIS_URL is not set: run `make test`, or `bin/local with -- go test ./...`")
	}
	return url
}

func openRedis(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client, err := redisx.Open(url, redisx.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// breakRedis points the use cases at a port where nobody listens; the result puts things right.
func (h *house) breakRedis(t *testing.T) (mend func()) {
	t.Helper()
	h.Redis = store.Redis{Client: openRedis(t, "redis://127.0.0.1:1/0")}
	return func() { h.Redis = store.Redis{Client: h.redis} }
}

func (h *house) tenant(t *testing.T) domain.Tenant {
	t.Helper()
	made, err := h.CreateTenant(t.Context(), cli, domain.Tenant{
		Slug: "s" + strings.ToLower(ids.New[ids.RequestPrefix]().String()[4:]), Name: "Demo", Timezone: "America/New_York", Currency: "USD",
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (h *house) key(t *testing.T, tenant ids.Tenant, mode string) (domain.Key, string) {
	t.Helper()
	k, secret, err := h.CreateKey(t.Context(), cli, app.NewKey{Tenant: tenant, Mode: mode, Name: "a key", Scopes: "all"})
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func (h *house) lookup(t *testing.T, secret string) domain.Principal {
	t.Helper()
	hash := apikey.Hash(secret)
	p, err := store.Principal(t.Context(), h.DB.Read(t.Context()), hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// state is what the gateways read of a key: "" when there is nothing.
func (h *house) state(t *testing.T, id domain.KeyID) string {
	t.Helper()
	v, err := h.redis.Get(t.Context(), "st:{"+id.String()+"}").Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // go-redis's own sentinel, never wrapped
		t.Fatal(err)
	}
	return v
}

func (h *house) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := h.owner.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (h *house) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	rows, err := h.owner.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// holds fails the test unless the tenant's chain holds and has n records.
func (h *house) holds(t *testing.T, tenant domain.Tenant, n int64) {
	t.Helper()
	v := h.verify(t, tenant)
	if v.Broken != "" || v.Records != n {
		t.Fatalf("audit chain of %d records (%s), want %d whole ones", v.Records, v.Broken, n)
	}
}

func (h *house) verify(t *testing.T, tenant domain.Tenant) app.Verdict {
	t.Helper()
	verdicts, err := h.VerifyAudit(t.Context(), []domain.Tenant{tenant}, nil)
	if err != nil || len(verdicts) != 1 {
		t.Fatalf("verify: %v %v", verdicts, err)
	}
	return verdicts[0]
}

// The secret of a key must be found in no table: not as text, not inside bytes.
func TestSecretIsStoredNowhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant(t)
	k, secret := h.key(t, tenant.ID, "live")
	if _, _, err := h.RevokeKey(t.Context(), cli, k.ID); err != nil {
		t.Fatal(err)
	}
	rows, err := h.owner.Query(t.Context(), `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 5 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	found := func(what string) (where []string) {
		for _, table := range tables {
			sql := fmt.Sprintf(`select count(*) from %s x where x::text like $1 or x::text like $2`, pgx.Identifier{table}.Sanitize())
			if h.count(t, sql, "%"+what+"%", "%"+hex.EncodeToString([]byte(what))+"%") > 0 {
				where = append(where, table)
			}
		}
		return where
	}
	hash := apikey.Hash(secret)
	if got := found(hex.EncodeToString(hash[:])); len(got) != 1 || got[0] != "api_keys" {
		t.Errorf("the hash is in %v, want api_keys alone: does this test find anything?", got)
	}
	for _, part := range []string{secret, secret[len("svc_live_"):], secret[len("svc_live_"):][:26]} {
		if got := found(part); len(got) > 0 {
			t.Errorf("the secret is in %v", got)
		}
	}
}

func workerQuery[T any](t *testing.T, db *pg.DB, read func(ctx context.Context, q pg.Q) (T, error)) (out T) {
	t.Helper()
	err := db.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
		out, err = read(ctx, tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
