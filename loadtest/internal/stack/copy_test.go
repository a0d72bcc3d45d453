package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/loadtest/internal/sqlbench"
)

// serverUser returns the user that runs PostgreSQL, which refuses to run as root.
func serverUser(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// onlyPostgres starts a platform that consists of a PostgreSQL server.
func onlyPostgres(t *testing.T) *Platform {
	t.Helper()
	pgbench, err := sqlbench.Find()
	if err != nil {
		t.Fatal(err)
	}
	bin, as := filepath.Dir(pgbench), serverUser(t)
	p := &Platform{Dir: t.TempDir(), Env: map[string]string{}}
	pids, data := filepath.Join(p.Dir, ".run", "pids"), filepath.Join(p.Dir, "data")
	for path, mode := range map[string]os.FileMode{pids: 0o700, data: 0o700} {
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if as != nil {
		for _, dir := range []string{filepath.Dir(p.Dir), p.Dir} { // the server's user must reach its folder
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(data, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(data, "postgres")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "initdb"), "-D", dir, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = serverEnv(), "/", &syscall.SysProcAttr{Credential: as}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	server, err := start(program{
		name: "postgres", env: serverEnv(), path: filepath.Join(bin, "postgres"), user: as, stop: syscall.SIGINT,
		args: []string{"-D", dir, "-c", "listen_addresses=127.0.0.1", "-c", "port=" + port, "-c", "unix_socket_directories=", "-c", "work_mem=5MB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Stop()
		for _, c := range p.closers {
			_ = c.Close()
		}
	})
	if err := os.WriteFile(filepath.Join(pids, "postgres"), []byte(strconv.Itoa(server.PID())), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env["POSTGRES_URL"] = "postgres://postgres:unused@" + addr + "/postgres?sslmode=disable"
	if err := server.await(t.Context(), time.Minute, func(ctx context.Context) error { return accepts(ctx, p.Env["POSTGRES_URL"]) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// query returns one value as text. It fails after two seconds, as for a server that is stopped.
func query(ctx context.Context, url, sql string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close(ctx) }()
	err = db.QueryRow(ctx, sql).Scan(&value)
	return value, err
}

// TestYardstickIsACopyThatRunsAlone checks that the copy has the data and the settings of the original, that one of the two servers is
// always stopped, and that the copy's changes do not reach the original.
func TestYardstickIsACopyThatRunsAlone(t *testing.T) {
	t.Parallel()
	p := onlyPostgres(t)
	ctx, original := t.Context(), p.Env["POSTGRES_URL"]
	held, err := pgx.Connect(ctx, original) // a connection that outlives the stop
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close(context.WithoutCancel(ctx)) }()
	if _, err := held.Exec(ctx, "create table t (n int); insert into t values (1)"); err != nil {
		t.Fatal(err)
	}
	y, err := p.Yardstick(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Stop()
	if _, err := query(ctx, y.URL(original), "select 1::text"); err == nil {
		t.Error("the copy runs while the platform runs")
	}
	failed := errors.New("of the caller")
	err = y.Alone(ctx, func() error {
		if _, err := query(ctx, original, "select 1::text"); err == nil {
			t.Error("the platform runs while the copy runs")
		}
		got, err := query(ctx, y.URL(original), "with more as (insert into t values (2)) select current_setting('work_mem') || ' ' || (select count(*) from t)")
		if err != nil || got != "5MB 1" {
			t.Errorf("%q, %v", got, err)
		}
		if got, err = query(ctx, y.URL(original), "select count(*)::text from t"); err != nil || got != "2" {
			t.Errorf("%q rows in the copy, %v", got, err)
		}
		if used, err := y.CPU(); err != nil || used < 0 {
			t.Errorf("%v, %v", used, err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	var n int
	if err := held.QueryRow(ctx, "select count(*) from t").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows in the original, %v", n, err)
	}
	pid := y.process.PID()
	y.Stop()
	if got := state(t, pid); got != "" {
		t.Errorf("the copy is in state %q after its stop", got)
	}
	if _, err := os.Stat(y.dir); err == nil {
		t.Errorf("%s is left", y.dir)
	}
}

func TestByDatabaseAddsUpServerProcesses(t *testing.T) {
	t.Parallel()
	p := onlyPostgres(t)
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, p.Env["POSTGRES_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	if _, err := admin.Exec(ctx, "create database busy"); err != nil {
		t.Fatal(err)
	}
	address, err := p.AdminURL("postgres://a:b@c/busy?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	busy, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close(context.WithoutCancel(ctx)) }()
	pid, err := p.PID("postgres")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err := busy.Exec(ctx, "select count(*) from generate_series(1, 200000)"); err != nil {
			t.Fatal(err)
		}
		used, err := ByDatabase(pid, []string{"busy", "none"})
		if err != nil {
			t.Fatal(err)
		}
		if used["busy"] >= 50*time.Millisecond && len(used) == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal(fmt.Sprint(used))
		}
	}
}
