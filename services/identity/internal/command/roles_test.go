package command

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/migrations"
)

// An administrator who is no superuser runs what `identity roles --print` prints, twice, and each database can then be migrated.
func TestRolesForAnAdministratorWhoIsNoSuperuser(t *testing.T) {
	t.Parallel()
	server, suffix := testservers.Getenv(t, "TEST_POSTGRES_URL"), ids.New[ids.RequestPrefix]().String()[4:]
	prefix, admin := "r"+suffix+"_", "admin_"+suffix
	run := func(statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		for _, sql := range statements {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	run(fmt.Sprintf(`create role %s login createrole createdb password 'admin'`, admin))
	t.Cleanup(func() {
		for _, s := range proto.Services() {
			if d := pg.DatabaseOf(prefix + s.Name); s.Database {
				run(`drop database if exists `+d.Name+` with (force)`, `drop role if exists `+d.Owner+`, `+d.App+`, `+d.Worker)
			}
		}
		run(`drop role ` + admin)
	})
	var script strings.Builder
	if err := printRoles(&script, prefix); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		psql := exec.CommandContext(t.Context(), "psql", "--set", "ON_ERROR_STOP=1", "--quiet", "--no-psqlrc", as(t, server, admin, "admin", "postgres"))
		psql.Stdin = strings.NewReader(script.String())
		if out, err := psql.CombinedOutput(); err != nil {
			t.Fatalf("psql: %v\n%s", err, out)
		}
	}
	d := pg.DatabaseOf(prefix + "identity")
	run(`alter role ` + d.Owner + ` password 'owner'`)
	if err := pg.Migrate(t.Context(), as(t, server, d.Owner, "owner", d.Name), migrations.FS, pg.Roles{App: d.App, Worker: d.Worker}); err != nil {
		t.Error(err)
	}
}

// as returns a server's URL with another role and database.
func as(t *testing.T, server, role, password, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(role, password), "/"+database
	return u.String()
}
