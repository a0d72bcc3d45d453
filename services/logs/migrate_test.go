package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/migrations"
)

// build returns the executable of a version of the service, "" for a development build.
func build(t *testing.T, version string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "logs")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-w -X holdfast.dev/libs/command.version="+version, "-o", file, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return file
}

// The executable of a release refuses to migrate a database that is more than one minor version older. Development builds migrate every
// database, and leave its version.
func TestMigrateRefusesToSkipAVersion(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	migrate := func(executable string) (string, error) {
		cmd := exec.CommandContext(t.Context(), executable, "migrate")
		cmd.Env = append(os.Environ(), "MIGRATE_DATABASE_URL="+db.OwnerURL, "APP_ROLE="+pgtest.Roles().App, "WORKER_ROLE="+pgtest.Roles().Worker)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	second, fourth, development := build(t, "1.2.5"), build(t, "1.4.0"), build(t, "")
	for _, step := range []struct {
		before, executable, after string
		refused                   string
	}{
		{"", development, "", ""}, // the database of the template
		{"", fourth, "1.4.0", ""}, // a database of a release that recorded no version
		{"", second, "1.2.5", ""}, // a rollback
		{"", development, "1.2.5", ""},
		{"", fourth, "1.2.5", "logs: migrate: 1.4.0 would skip a version: the database is at version 1.2.5; upgrade to the newest PATCH version of 1.3 first\n"},
		{"1.3.0", fourth, "1.4.0", ""},
	} {
		if step.before != "" {
			if _, err := conn.Exec(t.Context(), `update installation set version = $1`, step.before); err != nil {
				t.Fatal(err)
			}
		}
		out, err := migrate(step.executable)
		if step.refused == "" && err != nil || step.refused != "" && (err == nil || out != step.refused) {
			t.Errorf("%+v: %v, %q", step, err, out)
		}
		var version string
		if err := conn.QueryRow(t.Context(), `select coalesce(version, '') from installation`).Scan(&version); err != nil || version != step.after {
			t.Errorf("%+v: the version is %q, %v", step, version, err)
		}
	}
}
