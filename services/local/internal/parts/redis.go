package parts

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/services/local/internal/supervise"
)

// Redis configures the private Redis.
type Redis struct {
	Path      string // redis-server
	Port      int
	Host      string // host:port if it is not Port on this machine
	Password  string
	Throwaway bool // for tests: nothing is written to disk
}

// URL returns the connection string of database 0. It contains the default user, because redis-cli does not assume one.
func (r Redis) URL() string {
	u := url.URL{Scheme: "redis", Host: cmp.Or(r.Host, Loopback(r.Port)), Path: "/0", User: url.UserPassword("default", r.Password)}
	return u.String()
}

// StartRedis starts Redis with its own configuration file and returns when it responds.
func (h *Host) StartRedis(ctx context.Context, r Redis) error {
	dir, err := h.folder("redis")
	if err != nil {
		return err
	}
	conf := filepath.Join(dir, "redis.conf")
	if err := h.write(conf, r.config(dir)); err != nil {
		return err
	}
	err = h.Group.Start(supervise.Spec{
		Name: "redis", Path: r.Path, Args: []string{conf},
		Env: h.environment(dir), Dir: dir, User: h.User, Log: h.Log("redis"),
	})
	if err != nil {
		return err
	}
	return h.await(ctx, "redis", r.ready)
}

func (r Redis) config(dir string) string {
	persistence := "appendonly yes"
	if r.Throwaway {
		persistence = "appendonly no"
	}
	return fmt.Sprintf(`bind 127.0.0.1
port %d
dir %q
requirepass %s
save ""
%s
databases 64
set-proc-title no
daemonize no
`, r.Port, dir, r.Password, persistence)
}

// ready sends PING. While Redis reads the append-only file, it responds with an error.
func (r Redis) ready(ctx context.Context) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", Loopback(r.Port))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nPING\r\n", r.Password); err != nil {
		return err
	}
	lines := bufio.NewReader(conn)
	for _, want := range []string{"+OK", "+PONG"} {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.TrimSpace(line) != want {
			return fmt.Errorf("redis says %q", strings.TrimSpace(line))
		}
	}
	return nil
}
