package app_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

var cli = domain.Origin{Actor: "cli", Source: "cli:tester@here"}

// world contains identity's use cases on the test's own database and the shared Redis.
type world struct {
	*app.App
	db    *pgtest.DB
	redis redis.UniversalClient
	owner *pgx.Conn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	client := openRedis(t, redisURL(t))
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	return &world{db: db, redis: client, owner: owner, App: &app.App{
		DB: db.App, Worker: db.Worker, Redis: store.Redis{Client: client}, Scopes: proto.Scopes,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}}
}

func redisURL(t *testing.T) string {
	t.Helper()
	return testservers.Getenv(t, "TEST_REDIS_URL")
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

// breakRedis directs the use cases to a port without a server, until restore is called.
func (w *world) breakRedis(t *testing.T) (restore func()) {
	t.Helper()
	w.Redis = store.Redis{Client: openRedis(t, "redis://127.0.0.1:1/0")}
	return func() { w.Redis = store.Redis{Client: w.redis} }
}

func (w *world) tenant(t *testing.T) domain.Tenant {
	t.Helper()
	created, err := w.CreateTenant(t.Context(), cli, "s"+strings.ToLower(ids.New[ids.RequestPrefix]().String()[4:]), domain.TenantPatch{
		Name: patch.Value("Demo"), Timezone: patch.Value("America/New_York"), Currency: patch.Value("USD"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (w *world) key(t *testing.T, tenant ids.Tenant, mode string) (domain.Key, string) {
	t.Helper()
	k, secret, err := w.CreateKey(t.Context(), cli, app.NewKey{Tenant: tenant, Mode: mode, Name: "a key", Scopes: "all"})
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func (w *world) lookup(t *testing.T, secret string) domain.Principal {
	t.Helper()
	hash := apikey.Hash(secret)
	found, err := store.Principals(t.Context(), w.DB.Read(t.Context()), [][]byte{hash[:]})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0].Principal
}

// state returns the state of a key that the gateways read, or "" if there is none.
func (w *world) state(t *testing.T, id domain.KeyID) string {
	t.Helper()
	v, err := w.redis.Get(t.Context(), w.stateKey(t, id)).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // go-redis's own sentinel, never wrapped
		t.Fatal(err)
	}
	return v
}

// stateKey returns the key of a key's state that the gateways read.
func (w *world) stateKey(t *testing.T, id domain.KeyID) string {
	t.Helper()
	at, err := w.KeyTenantMode(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return "st:{" + at.TenantID.String() + "}:" + id.String()
}

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.owner.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	rows, err := w.owner.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// holds fails the test unless the tenant's chain is valid and has n records.
func (w *world) holds(t *testing.T, tenant domain.Tenant, n int64) {
	t.Helper()
	v := w.verify(t, tenant)
	if v.Broken != "" || v.Records != n {
		t.Fatalf("audit chain of %d records (%s), want %d whole ones", v.Records, v.Broken, n)
	}
}

func (w *world) verify(t *testing.T, tenant domain.Tenant) app.Verdict {
	t.Helper()
	verdicts, err := w.VerifyAudit(t.Context(), []domain.Tenant{tenant}, nil)
	if err != nil || len(verdicts) != 1 {
		t.Fatalf("verify: %v %v", verdicts, err)
	}
	if gentle, err := w.VerifyAuditGently(t.Context(), tenant); err != nil || gentle != verdicts[0] {
		t.Errorf("verified gently: %+v, %v, want %+v", gentle, err, verdicts[0])
	}
	return verdicts[0]
}

// The secret of a key must not be in any table, neither as text nor inside bytes.
func TestSecretIsStoredNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, secret := w.key(t, tenant.ID, "live")
	if _, _, err := w.RevokeKey(t.Context(), cli, k.ID); err != nil {
		t.Fatal(err)
	}
	rows, err := w.owner.Query(t.Context(), `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`)
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
			if w.count(t, sql, "%"+what+"%", "%"+hex.EncodeToString([]byte(what))+"%") > 0 {
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

// TestRegisterCommandLine checks that the command line is registered once, that a second registration renews its scopes whichever
// tenant it names, and that it does not bring a deleted app back.
func TestRegisterCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.tenant(t), w.tenant(t)
	w.Scopes = proto.Scopes[:2]
	app, _, err := w.RegisterCommandLine(t.Context(), cli, first.ID)
	if err != nil || app.ID.String() != domain.CommandLineID || !app.Published || len(app.Scopes) != 2 || !app.Redirects("http://127.0.0.1:49152/callback") {
		t.Fatalf("%+v %v", app, err)
	}
	w.Scopes = proto.Scopes
	app, _, err = w.RegisterCommandLine(t.Context(), cli, second.ID)
	if err != nil || app.TenantID != first.ID || len(app.Scopes) != len(proto.Scopes) {
		t.Errorf("%+v %v", app, err)
	}
	if _, _, err := w.DeleteApp(t.Context(), cli, app.ID); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []ids.Tenant{first.ID, second.ID} {
		if _, _, err := w.RegisterCommandLine(t.Context(), cli, tenant); !errors.Is(err, domain.ErrCommandLineDeleted) {
			t.Errorf("%v", err)
		}
	}
}
