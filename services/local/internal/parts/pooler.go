package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/services/local/internal/supervise"
)

// Pooler configures a private PgBouncer in transaction mode. It passes the logins of every role of the server on.
type Pooler struct {
	Path    string // pgbouncer
	Port    int
	Server  string // the superuser's URL of the server
	Sockets string // folder of the server's Unix socket; empty: TCP
	Conns   int    // maximum number of connections to the server, for each database and role
}

const (
	poolerMinor   = 21 // PgBouncer 1.21 is the first version with prepared statements in transaction mode
	poolerClients = 2000
	// poolerStatements is the number of prepared statements of a connection to the server, as many as a connection of a service keeps.
	poolerStatements = 512
)

var errNoPooler = fmt.Errorf("PgBouncer 1.%d or later is missing: run `make pgbouncer`", poolerMinor)

var poolerVersion = regexp.MustCompile(`PgBouncer 1\.(\d+)`)

// FindPooler returns the path of PgBouncer: that of the environment variable PGBOUNCER, of `make pgbouncer`, or of the system. The
// version must have prepared statements in transaction mode.
func FindPooler(ctx context.Context) (string, error) {
	candidates := []string{os.Getenv("PGBOUNCER")}
	if home, err := os.UserHomeDir(); err == nil {
		built, _ := filepath.Glob(filepath.Join(home, ".cache/holdfast/bin/pgbouncer-*"))
		candidates = append(candidates, built...)
	}
	for _, name := range append(candidates, "pgbouncer", "/usr/sbin/pgbouncer") {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output() //nolint:gosec // one of the candidates
		if found := poolerVersion.FindSubmatch(out); err == nil && found != nil {
			if minor, _ := strconv.Atoi(string(found[1])); minor >= poolerMinor {
				return path, nil
			}
		}
	}
	return "", errNoPooler
}

// URL returns the superuser's URL of the server, through the pooler.
func (p Pooler) URL() (string, error) { return Through(p.Server, p.Port) }

// Through returns a database's URL with the pooler's address.
func Through(address string, port int) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the server's URL is not a valid URL")
	}
	u.Host, u.RawQuery = Loopback(port), "sslmode=disable"
	return u.String(), nil
}

// StartPooler starts PgBouncer with its own configuration files and returns when it responds.
func (h *Host) StartPooler(ctx context.Context, p Pooler) error {
	dir, err := h.folder("pgbouncer")
	if err != nil {
		return err
	}
	server, err := url.Parse(p.Server)
	if err != nil {
		return errors.New("the server's URL is not a valid URL")
	}
	password, _ := server.User.Password()
	users, conf := filepath.Join(dir, "users"), filepath.Join(dir, "pgbouncer.ini")
	if err := h.write(users, fmt.Sprintf("%q %q\n", server.User.Username(), password)); err != nil {
		return err
	}
	if err := h.write(conf, p.config(server, users)); err != nil {
		return err
	}
	// The servers' user cannot read the cache in root's home folder.
	program, err := os.ReadFile(p.Path)
	if err != nil {
		return err
	}
	copied := filepath.Join(dir, "program")
	if err := h.write(copied, string(program)); err != nil {
		return err
	}
	if err := os.Chmod(copied, 0o700); err != nil {
		return err
	}
	err = h.Group.Start(supervise.Spec{
		Name: "pgbouncer", Path: copied, Args: []string{conf},
		Env: h.environment(dir), Dir: dir, User: h.User, Log: h.Log("pgbouncer"), Stop: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	return h.await(ctx, "pgbouncer", p.ready)
}

// config returns the settings. The pooler knows only the superuser's password, with which it reads the other roles' SCRAM keys, so
// a changed password is valid at once.
func (p Pooler) config(server *url.URL, users string) string {
	port := server.Port()
	if port == "" {
		port = "5432"
	}
	return strings.Join([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", cmp.Or(p.Sockets, server.Hostname()), port),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + strconv.Itoa(p.Port),
		"unix_socket_dir =",
		"pool_mode = transaction",
		"max_prepared_statements = " + strconv.Itoa(poolerStatements),
		"default_pool_size = " + strconv.Itoa(p.Conns),
		"max_client_conn = " + strconv.Itoa(poolerClients),
		"server_idle_timeout = 60",
		"server_login_retry = 1",
		"auth_type = scram-sha-256",
		"auth_file = " + users,
		"auth_user = " + server.User.Username(),
		"auth_dbname = postgres",
		"log_connections = 0",
		"log_disconnections = 0",
		"log_stats = 0",
	}, "\n") + "\n"
}

func (p Pooler) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	address, err := p.URL()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connecting to pgbouncer: %w", err)
	}
	return conn.Close(ctx)
}
