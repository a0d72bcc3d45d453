package parts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A version without prepared statements in transaction mode is not used.
func TestFindPooler(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	program := filepath.Join(dir, "pgbouncer")
	t.Setenv("PGBOUNCER", filepath.Join(dir, "missing"))
	for version, usable := range map[string]bool{"1.18.0": false, "1.20.1": false, "1.21.0": true, "1.24.1": true} {
		script := "#!/bin/sh\necho PgBouncer " + version + "\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		path, err := FindPooler(t.Context())
		if err != nil && !errors.Is(err, errNoPooler) || usable != (path == program) { // the system can have a usable one in /usr/sbin
			t.Errorf("%s: %q, %v", version, path, err)
		}
	}
}

func TestThrough(t *testing.T) {
	t.Parallel()
	got, err := Through("postgres://me:p%40ss@server:5432/db?sslmode=verify-full", 6432)
	if want := "postgres://me:p%40ss@127.0.0.1:6432/db?sslmode=disable"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
