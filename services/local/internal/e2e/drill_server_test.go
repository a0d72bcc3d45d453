package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/services/local/internal/parts"
)

// server is a PostgreSQL server that archives its WAL, unlike the one of `local up`. Its WAL segments have 1 MB, so that archives are
// small.
type server struct {
	bin, root, name, password string
	user                      *syscall.Credential
	port                      int
	cmd                       *exec.Cmd
	log                       *transcript
}

const archiveTimeout = 2 * time.Second // a segment is archived at the latest after this time

// newServer creates the first server, in a folder of its own.
func newServer(t *testing.T) *server {
	t.Helper()
	bin := parts.FindPostgres(t.Context())
	user, err := parts.ServerUser()
	if err != nil || bin == "" {
		t.Fatalf("PostgreSQL: %q, %v", bin, err)
	}
	root, err := os.MkdirTemp("", "holdfast-drill-") // t.TempDir is in a folder that the server's user cannot read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	s := &server{bin: bin, root: root, user: user, name: "first", password: unique("secret"), log: &transcript{}}
	s.port = freePort(t)
	if user != nil {
		if err := os.Chown(root, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(root, "password")
	s.tool(t, "bash", "-c", fmt.Sprintf("umask 077; echo %s > %s; mkdir backups", s.password, secret))
	s.tool(t, "initdb", "-D", s.dir(), "-U", "postgres", "--pwfile="+secret, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8",
		"--wal-segsize=1", "--no-sync")
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := (&parts.Ports{}).Free(0)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *server) dir() string { return filepath.Join(s.root, s.name) }

// url returns the administrator's URL.
func (s *server) url() string {
	return fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", s.password, s.port)
}

// tool runs one of PostgreSQL's programs, or a shell, as the server's user, and returns its output.
func (s *server) tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	return s.toolWith(t, nil, name, args...)
}

func (s *server) toolWith(t *testing.T, variables []string, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(s.bin, name)
	if _, err := os.Stat(path); err != nil {
		path = name
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.Env = s.root, append(append(os.Environ(), "HOME="+s.root), variables...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// shell runs commands of docs/operations/back-up.md with PostgreSQL's programs.
func (s *server) shell(t *testing.T, script string, variables ...string) string {
	t.Helper()
	variables = append(variables, "PATH="+s.bin+":"+os.Getenv("PATH"), "BACKUPS="+s.backups(), "POSTGRES_URL="+s.url())
	return s.toolWith(t, variables, "bash", "-euc", script)
}

// start starts the server and waits until it accepts connections and, after a restore, until it has ended the recovery.
func (s *server) start(t *testing.T, settings ...string) {
	t.Helper()
	settings = append(settings,
		"listen_addresses=127.0.0.1", fmt.Sprintf("port=%d", s.port), "unix_socket_directories=", "max_connections=400", "shared_buffers=128MB",
		"fsync=off", "log_min_messages=fatal", "timezone=UTC")
	args := []string{"-D", s.dir()}
	for _, set := range settings {
		args = append(args, "-c", set)
	}
	s.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(s.bin, "postgres"), args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir(), s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill() })
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), s.url())
		if err == nil {
			var recovering bool
			err = conn.QueryRow(t.Context(), `select pg_is_in_recovery()`).Scan(&recovering)
			_ = conn.Close(t.Context())
			if err == nil && !recovering {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("PostgreSQL does not accept connections: %v\n%s", err, s.log)
		}
	}
}

// archiving are the settings of the first server.
func (s *server) archiving() []string {
	return []string{
		"archive_mode=on", fmt.Sprintf("archive_timeout=%d", int(archiveTimeout.Seconds())),
		fmt.Sprintf("archive_command=test ! -f %[1]s/%%f && cp %%p %[1]s/%%f.part && mv %[1]s/%%f.part %[1]s/%%f", s.backups()),
	}
}

func (s *server) backups() string { return filepath.Join(s.root, "backups") }

// restore returns a server with the base backup and the archived WAL up to a moment.
func (s *server) restore(t *testing.T, name string, to time.Time, port int) *server {
	t.Helper()
	r := *s
	r.name, r.port, r.cmd, r.log = name, port, nil, &transcript{}
	r.shell(t, commands(t, "Restore")[1], "RESTORED="+r.dir(), "MOMENT="+momentText(to))
	r.start(t)
	return &r
}

// momentText returns a moment as PostgreSQL reads it.
func momentText(moment time.Time) string { return moment.UTC().Format("2006-01-02 15:04:05.000000+00") }

// take replaces a database by the one of another server.
func (s *server) take(t *testing.T, from *server, database string) {
	t.Helper()
	file := filepath.Join(s.root, database+".dump")
	u, err := url.Parse(from.url())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	s.tool(t, "pg_dump", "--format=custom", "--file="+file, "--dbname="+u.String())
	s.tool(t, "pg_restore", "--clean", "--create", "--exit-on-error", "--dbname="+s.url(), file)
	s.tool(t, "rm", file)
}

// kill ends all processes of the server immediately.
func (s *server) kill() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
	}
}

// discard stops the server and deletes its data.
func (s *server) discard(t *testing.T) {
	t.Helper()
	s.kill()
	s.tool(t, "rm", "-rf", s.dir())
}
