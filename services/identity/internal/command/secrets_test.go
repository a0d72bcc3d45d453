package command

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"
)

// keysShell returns a function that runs the command in a folder without a running platform.
func keysShell(t *testing.T) (run func(args ...string) (stdout, stderr string, err error)) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return func(args ...string) (string, string, error) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), path, append([]string{"keys"}, args...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "POSTGRES_URL=postgres://admin:admins-password@postgres.test/?sslmode=require", "REDIS_URL=rediss://:redis-password@redis.test:6379"}
		err := cmd.Run()
		return stdout.String(), stderr.String(), err
	}
}

// `keys init` creates Secrets that `keys check` accepts, in a folder and as YAML, and prints no key unless it prints YAML.
func TestKeysInitAndCheck(t *testing.T) {
	t.Parallel()
	run := keysShell(t)
	out, said, err := run("init", "--out", "secrets")
	if err != nil || !strings.Contains(out, "14 Secrets and 27 pairs of services in secrets.") || strings.Contains(out+said, "k1:") {
		t.Fatalf("%v: %s%s", err, out, said)
	}
	if out, said, err := run("check", "--dir", "secrets"); err != nil || out != "14 Secrets and 27 pairs of services agree.\n" {
		t.Errorf("%v: %s%s", err, out, said)
	}
	if _, said, err := run("init", "--out", "secrets"); err == nil || !strings.Contains(said, "not overwritten") {
		t.Errorf("a second time: %v: %s", err, said)
	}
	if _, said, err := run("init"); err == nil || !strings.Contains(said, "[out yaml]") {
		t.Errorf("without a place: %v: %s", err, said)
	}
	if help, _, err := run("init", "--help"); err != nil || strings.Contains(help, "password@") {
		t.Errorf("the help shows a password: %v: %s", err, help)
	}
	manifest, said, err := run("init", "--yaml", "--release", "site")
	if err != nil || said != "" || strings.Count(manifest, "kind: Secret") != 14 || strings.Contains(manifest, "admins-password") {
		t.Fatalf("%v: %s%s", err, manifest, said)
	}
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, err := run("check", "--yaml", file, "--release", "site"); err != nil {
		t.Errorf("%v: %s%s", err, out, said)
	}
	if _, said, err := run("check", "--yaml", file); err == nil || !strings.Contains(said, "gateway: the Secret is missing") {
		t.Errorf("with the names of another release: %v: %s", err, said)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(manifest, "  CURSOR_KEYS: k1:", "  CURSOR_KEYS: ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, said, err := run("check", "--yaml", file, "--release", "site"); err == nil || !strings.Contains(said, "CURSOR_KEYS: cursor key 1") {
		t.Errorf("a key without an id: %v: %s", err, said)
	}
}

// `keys rotate` does one step per call, and the Secrets agree after each. The last step of an encryption key requires a flag.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	run := keysShell(t)
	if _, said, err := run("init", "--out", "secrets"); err != nil {
		t.Fatal(said)
	}
	manifest, said, err := run("init", "--yaml")
	if err != nil {
		t.Fatal(said)
	}
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, where := range [][]string{{"--dir", "secrets"}, {"--yaml", file}} {
		for i, want := range []string{"Step 1 of 3. Both keys", "Step 2 of 3. The new key", "Step 3 of 3. The old key"} {
			out, said, err := run(append([]string{"rotate", "gateway/bookings"}, where...)...)
			changed := []string{"holdfast-bookings: CALLER_VERIFY_KEYS", "holdfast-gateway: CALLER_SIGN_KEYS", "holdfast-bookings: CALLER_VERIFY_KEYS"}[i]
			if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "Changed:\n  "+changed+"\n") || strings.Contains(out, "k2:") {
				t.Errorf("%v: %s%s; want %q", err, out, said, want)
			}
			if out, said, err := run(append([]string{"check"}, where...)...); err != nil {
				t.Errorf("after %q: %s%s", want, out, said)
			}
		}
	}
	for range 2 {
		if _, said, err := run("rotate", "webhooks/SERVICE_ENCRYPTION_KEYS", "--dir", "secrets"); err != nil {
			t.Error(said)
		}
	}
	if _, said, err := run("rotate", "webhooks/SERVICE_ENCRYPTION_KEYS", "--dir", "secrets"); err == nil || !strings.Contains(said, "repeat the command with --resealed") {
		t.Errorf("the last step: %v: %s", err, said)
	}
	if out, said, err := run("rotate", "webhooks/SERVICE_ENCRYPTION_KEYS", "--dir", "secrets", "--resealed"); err != nil || !strings.Contains(out, "Step 3 of 3") {
		t.Errorf("%v: %s%s", err, out, said)
	}
	if _, said, err := run("rotate", "nothing", "--dir", "secrets"); err == nil || !strings.Contains(said, "CALLER/TARGET") {
		t.Errorf("an unknown name: %v: %s", err, said)
	}
}

// After the SQL that `keys passwords` prints, each role can log in with the URL in its Secret. The SQL does not contain the passwords.
func TestKeysPasswords(t *testing.T) {
	t.Parallel()
	server, prefix := testservers.Getenv(t, "TEST_POSTGRES_URL"), "k"+ids.New[ids.RequestPrefix]().String()[4:]+"_"
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		for _, s := range proto.Services() {
			if d := pg.DatabaseOf(prefix + s.Name); s.Database {
				exec(`drop role ` + d.Owner + `, ` + d.App + `, ` + d.Worker)
			}
		}
	})
	for _, s := range proto.Services() {
		if s.Database {
			for _, sql := range pg.DatabaseOf(prefix + s.Name).RoleStatements() {
				exec(sql)
			}
		}
	}
	run := keysShell(t)
	if _, said, err := run("init", "--out", "secrets", "--postgres-url", server, "--prefix", prefix); err != nil {
		t.Fatal(said)
	}
	sql, said, err := run("passwords", "--dir", "secrets")
	if err != nil || strings.Count(sql, "alter role") != 18 {
		t.Fatalf("%v: %s%s", err, sql, said)
	}
	exec(sql)
	manifest, said, err := run("init", "--yaml", "--postgres-url", server, "--prefix", prefix)
	if err != nil {
		t.Fatal(said)
	}
	exec(passwordsOf(t, run, manifest))
	logIn(t, manifest, prefix)
}

// passwordsOf returns the SQL for the Secrets in a manifest.
func passwordsOf(t *testing.T, run func(args ...string) (string, string, error), manifest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	sql, said, err := run("passwords", "--yaml", file)
	if err != nil {
		t.Fatal(said)
	}
	return sql
}

// logIn connects with each URL of a manifest to the database postgres, because the databases themselves do not exist.
func logIn(t *testing.T, manifest, prefix string) {
	t.Helper()
	logins := 0
	for line := range strings.Lines(manifest) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || !strings.HasSuffix(name, "DATABASE_URL") {
			continue
		}
		u, err := url.Parse(value)
		if err != nil {
			t.Fatal(name)
		}
		password, _ := u.User.Password()
		if !strings.HasPrefix(u.User.Username(), prefix) || len(password) != 64 {
			t.Errorf("%s has the user %s", name, u.User.Username())
		}
		u.Path = "/postgres"
		conn, err := pgx.Connect(t.Context(), u.String())
		if err != nil {
			t.Errorf("%s: %v", u.User.Username(), err)
			continue
		}
		_ = conn.Close(t.Context())
		u.User = url.UserPassword(u.User.Username(), "another")
		if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
			_ = conn.Close(t.Context())
			t.Errorf("%s logs in with another password", u.User.Username())
		}
		logins++
	}
	if logins != 18 {
		t.Errorf("%d logins", logins)
	}
}
