// Package pgtest provides each test with its own database: a clone of a template that is migrated, and filled with rows, once. It
// needs a real PostgreSQL at TEST_POSTGRES_URL, which package testservers can start.
package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testservers"
)

const (
	appRole    = "holdfast_test_app"
	workerRole = "holdfast_test_worker"
	ownerRole  = "holdfast_test_owner"
	adminRole  = "holdfast_test_admin"
	password   = "test"
)

// DB is one test's database in the three roles.
type DB struct {
	App, Worker                 *pg.DB
	OwnerURL, AppURL, WorkerURL string

	sent *recorder // the statements of App
}

// New clones the template for migrations (nil: only the common tables) and drops the clone when the test ends. The statements fill,
// which the owner runs, are part of the template: tests that read the same many rows share the time that it takes to write them.
// With TEST_THROUGH_POOLER=true, App and Worker connect through the pooler of TEST_POOLER_URL.
func New(t testing.TB, migrations fs.FS, fill ...string) *DB {
	t.Helper()
	server := adminURL(t)
	template := templateFor(t, server, migrations, fill)
	admin, _ := url.Parse(withRole(server, adminRole, "postgres"))
	name := "t_" + strings.TrimPrefix(ids.New[ids.RequestPrefix]().String(), "req_")
	// The other strategy writes each page of the clone to the WAL.
	exec(t, admin.String(), fmt.Sprintf(`create database %s template %s strategy file_copy`, name, template))
	t.Cleanup(func() { exec(t, server.String(), fmt.Sprintf(`drop database if exists %s with (force)`, name)) })
	db := &DB{
		OwnerURL: withRole(admin, ownerRole, name), AppURL: withRole(admin, appRole, name), WorkerURL: withRole(admin, workerRole, name),
	}
	db.sent = &recorder{}
	app, worker, pooler := db.AppURL, db.WorkerURL, os.Getenv("TEST_THROUGH_POOLER") == "true"
	if pooler {
		app, worker = Pooled(t, app), Pooled(t, worker)
	}
	db.App = open(t, app, pg.Options{MaxConns: 8, Tracer: db.sent, Pooler: pooler})
	db.Worker = open(t, worker, pg.Options{MaxConns: 8, Background: true, Pooler: pooler})
	return db
}

// Pooled returns one of the database's URLs through the pooler of TEST_POOLER_URL, which is in transaction mode and has two
// connections to the server for each database and role.
func Pooled(t testing.TB, address string) string {
	t.Helper()
	pooler, err := url.Parse(testservers.Getenv(t, "TEST_POOLER_URL"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = pooler.Host
	return u.String()
}

// Ctx returns a context with a caller of a new tenant, without scopes.
func Ctx(t testing.TB, mode caller.Mode) context.Context {
	return CtxOf(t, ids.New[ids.TenantPrefix](), mode)
}

// Timezone is the time zone of the callers in tests.
const Timezone = "America/New_York"

// CtxOf returns a context with a caller of the tenant: New York time, USD.
func CtxOf(t testing.TB, tenant ids.Tenant, mode caller.Mode) context.Context {
	return caller.With(t.Context(), caller.Caller{
		Tenant: tenant, Mode: mode, Timezone: Timezone, Currency: "USD", PolicyVersion: 1,
		Credential: "key_test", Kind: "api_key", RequestID: ids.New[ids.RequestPrefix]().String(),
	})
}

func open(t testing.TB, url string, opt pg.Options) *pg.DB {
	t.Helper()
	db, err := pg.Open(context.Background(), url, opt)
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	t.Cleanup(db.Close)
	return db
}

func adminURL(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse(testservers.Getenv(t, "TEST_POSTGRES_URL"))
	if err != nil {
		t.Fatalf("TEST_POSTGRES_URL: %v", err)
	}
	return u
}

func withRole(admin *url.URL, role, database string) string {
	u := *admin
	u.User = url.UserPassword(role, password)
	u.Path = "/" + database
	return u.String()
}

var (
	mu        sync.Mutex
	templates = map[string]bool{}
)

// templateFor creates a template once per server. Processes of other packages wait for an advisory lock.
func templateFor(t testing.TB, admin *url.URL, migrations fs.FS, fill []string) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	name := "tpl_" + digest(t, migrations, fill)
	server := admin.String() + " " + name
	if templates[server] {
		return name
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn := connect(t, admin.String())
	defer func() { _ = conn.Close(context.Background()) }()
	must(t, conn, `select pg_advisory_lock(hashtext('pgtest'))`)
	administrate(t, conn)
	var exists bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists); err != nil {
		t.Fatalf("look for template: %v", err)
	}
	if !exists {
		building := name + "_new"
		managed := withRole(admin, adminRole, "postgres")
		exec(t, managed, `drop database if exists `+building+` with (force)`)
		provision(t, admin, building)
		owner := withRole(admin, ownerRole, building)
		if err := pg.Migrate(ctx, owner, migrations, pg.Roles{App: appRole, Worker: workerRole}); err != nil {
			t.Fatalf("migrate template: %v", err)
		}
		exec(t, owner, fill...)
		exec(t, managed, fmt.Sprintf(`alter database %s rename to %s`, building, name))
	}
	templates[server] = true
	return name
}

// administrate creates the administrator of the test's databases. Like that of a managed server, it is no superuser.
func administrate(t testing.TB, superuser *pgx.Conn) {
	t.Helper()
	must(t, superuser, fmt.Sprintf(`do $$ begin
		if not exists (select from pg_roles where rolname = '%[1]s') then create role %[1]s login password '%[2]s' createrole createdb; end if;
	end $$`, adminRole, password))
}

// provision creates a database with its roles as the administrator, like installations on managed servers.
func provision(t testing.TB, server *url.URL, name string) {
	t.Helper()
	d := pg.Database{Name: name, Owner: ownerRole, App: appRole, Worker: workerRole}
	statements := d.RoleStatements()
	for _, role := range []string{ownerRole, appRole, workerRole} { // only once: a new password breaks the logins of a pooler
		statements = append(statements, fmt.Sprintf(`do $$ begin
			if shobj_description('%[1]s'::regrole, 'pg_authid') is null then
				alter role %[1]s password '%[2]s';
				comment on role %[1]s is 'has a password';
			end if;
		end $$`, role, password))
	}
	exec(t, withRole(server, adminRole, "postgres"), append(append(statements, d.Create()), d.GrantStatements()...)...)
	exec(t, withRole(server, adminRole, name), d.InsideStatements()...)
}

// digest identifies a set of migrations, including the common ones, and the statements that follow them.
func digest(t testing.TB, migrations fs.FS, fill []string) string {
	t.Helper()
	h := sha256.New()
	for _, files := range []fs.FS{pg.Common(), migrations} {
		if files == nil {
			continue
		}
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(files, path)
			h.Write([]byte(path))
			h.Write(b)
			return err
		})
		if err != nil {
			t.Fatalf("read migrations: %v", err)
		}
	}
	for _, sql := range fill {
		h.Write([]byte(sql))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func connect(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), address)
	if err != nil {
		t.Fatalf("connect to TEST_POSTGRES_URL: %v", err)
	}
	return conn
}

func must(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func exec(t testing.TB, address string, statements ...string) {
	t.Helper()
	conn := connect(t, address)
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range statements {
		must(t, conn, sql)
	}
}
