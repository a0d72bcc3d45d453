package stack

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// poolerConns is the number of connections of the pooler to PostgreSQL for each role, as many as the service has without it.
const poolerConns = 16

// poolerNice is the pooler's priority, which docs/connections.md recommends. It needs root's rights.
const poolerNice = -10

// The names of the programs that Pooled starts for a service.
const (
	pooledGateway = "gateway-pooled"
	PgBouncer     = "pgbouncer"
)

func pooled(service string) string { return service + "-pooled" }

// PooledPIDs returns the process ids of the programs that Pooled started, by name.
func (p *Platform) PooledPIDs(service string) map[string]int {
	pids := map[string]int{}
	for _, one := range p.others {
		if slices.Contains([]string{pooledGateway, pooled(service), PgBouncer}, one.name) {
			pids[one.name] = one.PID()
		}
	}
	return pids
}

// Pooled starts PgBouncer in transaction mode, and another process of a service and another gateway that use it. It returns the
// gateway's address. PgBouncer connects to PostgreSQL's Unix socket. It returns ErrMissing if PgBouncer is not installed.
func (p *Platform) Pooled(ctx context.Context, service string) (addr string, err error) {
	settings, err := p.Settings(service)
	if err != nil {
		return "", err
	}
	pooler, err := p.pooler(ctx, map[string]string{"app": settings["DATABASE_URL"], "worker": settings["WORKER_DATABASE_URL"]})
	if err != nil {
		return "", err
	}
	settings["DATABASE_URL"], settings["WORKER_DATABASE_URL"] = poolerURL(pooler, "app"), poolerURL(pooler, "worker")
	settings["DATABASE_POOLER"] = "true"
	for _, name := range []string{"HTTP_ADDR", "METRICS_ADDR"} {
		if settings[name], err = FreeAddr(); err != nil {
			return "", err
		}
	}
	_, err = p.Run(ctx, pooled(service), "http://"+settings["HTTP_ADDR"]+"/readyz", flat(settings), filepath.Join(p.Dir, "bin", service), "serve")
	if err != nil {
		return "", err
	}
	_, addr, _, err = p.Gateway(ctx, pooledGateway, map[string]string{
		"UPSTREAM_" + strings.ToUpper(service) + "_URL": "http://" + settings["HTTP_ADDR"],
	})
	return addr, err
}

func poolerURL(addr, database string) string {
	return "postgres://any@" + addr + "/" + database + "?sslmode=disable"
}

// pooler starts PgBouncer in front of the databases of these URLs and returns its address. A database's name is the key of its URL.
func (p *Platform) pooler(ctx context.Context, databases map[string]string) (addr string, err error) {
	path := os.Getenv("PGBOUNCER")
	if path == "" {
		path = "pgbouncer"
	}
	if path, err = exec.LookPath(path); err != nil {
		return "", fmt.Errorf("%w; run `make pgbouncer`", ErrMissing)
	}
	if addr, err = FreeAddr(); err != nil {
		return "", err
	}
	text, err := poolerConfig(addr, p.sockets(), databases)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(p.Dir, "pgbouncer")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return "", err
	}
	binary, config := filepath.Join(dir, "pgbouncer"), filepath.Join(dir, "pgbouncer.ini")
	if err := link(path, binary); err != nil { // the other user cannot read root's home folder
		return "", err
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	account, err := ordinaryUser()
	if err != nil {
		return "", err
	}
	if account != nil {
		if err := os.Chown(config, int(account.Uid), int(account.Gid)); err != nil {
			return "", err
		}
	}
	log, err := p.Log("pgbouncer")
	if err != nil {
		return "", err
	}
	one, err := start(program{name: PgBouncer, env: inherited(), log: log, path: binary, args: []string{config}, user: account})
	if err != nil {
		return "", err
	}
	p.others = append(p.others, one)
	p.prioritize(one)
	return addr, one.await(ctx, 20*time.Second, func(context.Context) error {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

// prioritize raises the priority of the pooler, if this user may do so.
func (p *Platform) prioritize(pooler *Process) {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, pooler.PID(), poolerNice); err != nil {
		p.say("PgBouncer has the priority of all other processes: %v", err)
	}
}

// ordinaryUser returns the user nobody for root, because PgBouncer refuses to run as root, and nil otherwise.
func ordinaryUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // the user of this process
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// poolerConfig returns the settings of docs/connections.md, except for the logins: a client needs none on loopback.
func poolerConfig(addr, sockets string, databases map[string]string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	lines := []string{"[databases]"}
	for name, address := range databases {
		u, err := url.Parse(address)
		if err != nil {
			return "", fmt.Errorf("URL of the database %s is not valid", name)
		}
		password, _ := u.User.Password()
		lines = append(lines, fmt.Sprintf("%s = host=%s port=%s dbname=%s user=%s password=%s",
			name, sockets, u.Port(), strings.TrimPrefix(u.Path, "/"), u.User.Username(), password))
	}
	return strings.Join(append(lines,
		"[pgbouncer]", "listen_addr = "+host, "listen_port = "+port, "unix_socket_dir =", "auth_type = any",
		"pool_mode = transaction", "max_prepared_statements = 512", fmt.Sprintf("default_pool_size = %d", poolerConns),
		"pkt_buf = 16384", "log_connections = 0", "log_disconnections = 0", "log_stats = 0",
	), "\n") + "\n", nil
}
