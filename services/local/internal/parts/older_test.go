package parts

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/testservers"
)

// TestDatabaseOfAnOlderRelease checks that the administrator, who is no superuser, takes over a database that an older release created as
// the superuser: its owner has BYPASSRLS, and its extensions belong to the superuser.
func TestDatabaseOfAnOlderRelease(t *testing.T) {
	t.Parallel()
	super := testservers.Getenv(t, "TEST_POSTGRES_URL")
	d := Database{Name: "older_release", Passwords: map[string]string{"owner": "a", "app": "b", "worker": "c"}}
	inside, err := url.Parse(super)
	if err != nil {
		t.Fatal(err)
	}
	inside.Path = "/" + d.Name
	statements(t, super,
		fmt.Sprintf("drop database if exists %s with (force)", d.Name),
		"drop role if exists older_release_owner, older_release_app, older_release_worker",
		"create role older_release_owner with login bypassrls password 'former'",
		"create role older_release_app with login nobypassrls password 'former'",
		"create role older_release_worker with login nobypassrls password 'former'",
		"grant older_release_app, older_release_worker to older_release_owner",
		"create database older_release owner older_release_owner",
		"revoke all on database older_release from public",
		"grant connect on database older_release to older_release_app, older_release_worker")
	statements(t, inside.String(), "create extension btree_gist", "create extension pgcrypto", "alter schema public owner to older_release_owner")
	for range 2 {
		admin, err := Administrator(t.Context(), super, "admin", []Database{d})
		if err != nil {
			t.Fatal(err)
		}
		if err := EnsureDatabase(t.Context(), admin, d); err != nil {
			t.Fatal(err)
		}
	}
	for role, statement := range map[string]string{"owner": "create table notes (note text)", "app": "select 1", "worker": "select 1"} {
		address, err := d.URL(super, role)
		if err != nil {
			t.Fatal(err)
		}
		statements(t, address, statement)
	}
}

// statements runs statements in one connection.
func statements(t *testing.T, address string, all ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := run(t.Context(), conn, all...); err != nil {
		t.Fatal(err)
	}
}
