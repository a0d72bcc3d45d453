package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pair is a PostgreSQL server with a standby that streams from it, both on loopback.
type Pair struct {
	URL string // of both, as the superuser: connections go to the one that accepts writes

	t                testing.TB
	bin              string
	dir              string
	user             *syscall.Credential
	primary, standby server
}

// server is one of the two servers.
type server struct {
	data string
	port int
	url  string
	pid  int
	kill func()
}

func (p *Pair) at(name string, port int) server {
	return server{data: filepath.Join(p.dir, name), port: port, url: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)}
}

const startLimit = time.Minute

// StartPair starts the servers and stops them at the end of the test. With synchronous, a commit returns after the standby has stored
// it. Without, the standby may be behind. It skips the test if there is no PostgreSQL for the user.
func StartPair(t testing.TB, synchronous bool) *Pair {
	t.Helper()
	p := &Pair{t: t}
	p.find()
	first, second := freePort(t), freePort(t)
	p.primary, p.standby = p.at("first", first), p.at("second", second)
	p.tool("initdb", "-D", p.primary.data, "-U", "postgres", "-A", "trust", "--no-sync")
	p.serve(&p.primary)
	p.follow(synchronous)
	q := url.Values{"host": {"127.0.0.1,127.0.0.1"}, "port": {fmt.Sprintf("%d,%d", first, second)}, "target_session_attrs": {"read-write"}, "sslmode": {"disable"}}
	p.URL = "postgres://postgres@/postgres?" + q.Encode()
	return p
}

// Delay stops the stream to the standby, as a slow network does.
func (p *Pair) Delay() { signal(p.t, p.primary.pid, "walsender", syscall.SIGSTOP) }

// Kill kills the primary as a power failure does.
func (p *Pair) Kill() { p.primary.kill() }

// Promote makes the standby accept writes.
func (p *Pair) Promote() { p.tool("pg_ctl", "promote", "-D", p.standby.data, "-w", "-t", "60") }

// Rejoin makes the killed primary a synchronous standby of the promoted one, with a new copy of its data.
func (p *Pair) Rejoin() {
	p.primary, p.standby = p.standby, p.primary
	if err := os.RemoveAll(p.standby.data); err != nil {
		p.t.Fatal(err)
	}
	p.follow(true)
}

// follow starts the standby with a copy of the primary's data.
func (p *Pair) follow(synchronous bool) {
	p.t.Helper()
	one := p.primary.url
	p.tool("pg_basebackup", "-D", p.standby.data, "-d", one+"&application_name=standby", "-R", "-X", "stream", "-c", "fast")
	p.serve(&p.standby)
	if synchronous {
		exec(p.t, one, `alter system set synchronous_standby_names = 'standby'`, `select pg_reload_conf()`)
	}
	await(p.t, "the standby streams", func() bool {
		conn := connect(p.t, one)
		defer func() { _ = conn.Close(context.Background()) }()
		var n int
		err := conn.QueryRow(context.Background(), `select count(*) from pg_stat_replication where state = 'streaming' and (sync_state = 'sync' or not $1)`, synchronous).Scan(&n)
		return err == nil && n == 1
	})
}

func (p *Pair) find() {
	p.t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_basebackup")
	if len(found) == 0 {
		p.t.Skip("there is no pg_basebackup in /usr/lib/postgresql")
	}
	p.bin = filepath.Dir(found[len(found)-1])
	var err error
	if p.dir, err = os.MkdirTemp("", "holdfast-pair-"); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = os.RemoveAll(p.dir) })
	if os.Getuid() != 0 {
		return
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		p.t.Skip("as root, a user postgres is needed")
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	p.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(p.dir, int(uid), int(gid)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Pair) command(name string, args ...string) *osexec.Cmd {
	cmd := osexec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: p.user, Setpgid: true}
	return cmd
}

func (p *Pair) tool(name string, args ...string) {
	p.t.Helper()
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// serve starts a server and waits until it listens. Its kill ends it and all its processes at once.
func (p *Pair) serve(s *server) {
	p.t.Helper()
	cmd := p.command("postgres", "-D", s.data, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=400", "-c", "shared_buffers=32MB", "-c", "wal_level=replica", "-c", "wal_receiver_timeout=5s",
		"-c", "fsync=off") // the machine goes on when the server is killed
	log, err := os.Create(s.data + ".log")
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close() // The process has its own descriptor.
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.pid = cmd.Process.Pid
	s.kill = func() {
		select {
		case <-ended: // its number can be that of another process now
			return
		default:
		}
		// All of them stop before the first one ends. Otherwise, those that wait for the standby would notice the end of the first one,
		// show their commits to the others, and lose them.
		all := []int{cmd.Process.Pid}
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGSTOP)
		for _, child := range children(cmd.Process.Pid) {
			all = append(all, child)
			_ = syscall.Kill(child, syscall.SIGSTOP)
		}
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-ended
	}
	p.t.Cleanup(s.kill)
	await(p.t, "PostgreSQL listens", func() bool {
		conn, err := pgx.Connect(context.Background(), s.url)
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
}

// children returns the ids of the processes of a server.
func children(pid int) (ids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(text)) {
		if id, err := strconv.Atoi(child); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// signal sends a signal to the process of a server with the title.
func signal(t testing.TB, server int, title string, s syscall.Signal) {
	t.Helper()
	for _, id := range children(server) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id)); strings.Contains(string(line), title) {
			if err := syscall.Kill(id, s); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("PostgreSQL has no process %q", title)
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(startLimit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", startLimit, what)
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
