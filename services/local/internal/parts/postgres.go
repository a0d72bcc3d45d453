package parts

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/services/local/internal/supervise"
)

// Postgres configures the private PostgreSQL.
type Postgres struct {
	Bin       string // folder of postgres and initdb
	Port      int
	Host      string // host:port if it is not Port on this machine
	Password  string // of the superuser postgres
	Sockets   string // folder of its Unix socket; empty: none
	Throwaway bool   // for tests: nothing is synced to disk
}

// URL returns the superuser's connection string.
func (p Postgres) URL() string {
	u := url.URL{
		Scheme: "postgres", Host: cmp.Or(p.Host, Loopback(p.Port)), Path: "/postgres",
		User: url.UserPassword("postgres", p.Password), RawQuery: "sslmode=disable",
	}
	return u.String()
}

// StartPostgres initializes a new cluster, starts it, and returns when it responds.
func (h *Host) StartPostgres(ctx context.Context, p Postgres) error {
	dir, err := h.folder("postgres")
	if err != nil {
		return err
	}
	if err := h.initPostgres(ctx, dir, p); err != nil {
		return err
	}
	err = h.Group.Start(supervise.Spec{
		Name: "postgres", Path: filepath.Join(p.Bin, "postgres"), Args: p.arguments(dir),
		Env: h.environment(dir), Dir: dir, User: h.User, Log: h.Log("postgres"),
		Stop: syscall.SIGINT, Orphan: syscall.SIGINT, StopTimeout: 20 * time.Second,
	})
	if err != nil {
		return err
	}
	return h.await(ctx, "postgres", p.ready)
}

func (h *Host) initPostgres(ctx context.Context, dir string, p Postgres) error {
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil { // an interrupted start left it incomplete
		return err
	}
	if _, err := h.folder("postgres"); err != nil {
		return err
	}
	secret := filepath.Join(h.Dir, "postgres.password")
	if err := h.write(secret, p.Password+"\n"); err != nil {
		return err
	}
	defer func() { _ = os.Remove(secret) }()
	return h.run(ctx, h.Dir, filepath.Join(p.Bin, "initdb"), "-D", dir, "-U", "postgres",
		"--pwfile="+secret, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
}

func (p Postgres) arguments(dir string) []string {
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(p.Port), "unix_socket_directories=" + p.Sockets,
		"max_connections=400", "shared_buffers=256MB", "max_wal_size=2GB",
		"timezone=UTC", "log_timezone=UTC", "log_line_prefix=%m [%p] %u@%d ", "log_min_messages=warning",
	}
	if p.Throwaway {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0")
	} else { // the tables of a new platform grow quickly: the planner needs statistics soon
		settings = append(settings, "autovacuum_naptime=5s")
	}
	if runtime.GOOS == "linux" { // after a kill: one sync call instead of one for each of thousands of files
		settings = append(settings, "recovery_init_sync_method=syncfs")
	}
	args := []string{"-D", dir}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
}

func (p Postgres) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return fmt.Errorf("connecting to postgres: %w", err)
	}
	return conn.Close(ctx)
}
