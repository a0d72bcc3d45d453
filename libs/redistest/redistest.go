// Package redistest provides tests with their own Redis servers if the shared server is not enough: with TLS, as a Cluster, and
// with a Sentinel. All of them listen on loopback and stop when the test ends.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/tlstest"
)

// Passwords of the servers' default user, and of the Sentinel.
const (
	Password         = "a-test's-password"
	SentinelPassword = "a-sentinel's-password" //nolint:gosec // a test's
)

// MasterName is the name of the master in the Sentinel's configuration.
const MasterName = "holdfast"

const maxWait = 30 * time.Second

// Server starts one server, with TLS if a is not nil, and returns its URL. It skips the test when redis-server was built without
// TLS.
func Server(t testing.TB, a *tlstest.Authority) string {
	t.Helper()
	port := freePorts(t, 1)[0]
	start(t, port, tls(t, a, port)...)
	return address(a, port)
}

// Cluster starts three masters that share the slots, and returns the URL of two of them. kill stops the third. The others continue to
// serve their slots.
func Cluster(t testing.TB, a *tlstest.Authority) (u string, kill func()) {
	t.Helper()
	u, masters := cluster(t, a)
	return u, masters[2].kill
}

// SilentCluster is Cluster without TLS. pause makes the third master silent, which has the last third of the slots: its connections
// stay open, but it does not respond until resume. silent reports whether it has the slot of a hash tag.
func SilentCluster(t testing.TB) (u string, pause, resume func(), silent func(tag string) bool) {
	t.Helper()
	u, masters := cluster(t, nil)
	third := masters[2]
	return u, func() { third.signal(t, syscall.SIGSTOP) }, func() { third.signal(t, syscall.SIGCONT) }, func(tag string) bool {
		return masterOf(t, masters, tag).port == third.port
	}
}

// StoppableCluster is Cluster without TLS. stop makes the master silent that has the slot of a hash tag, until resume.
func StoppableCluster(t testing.TB) (u string, stop func(tag string) (resume func())) {
	t.Helper()
	u, masters := cluster(t, nil)
	return u, func(tag string) (resume func()) {
		s := masterOf(t, masters, tag)
		s.signal(t, syscall.SIGSTOP)
		return func() { s.signal(t, syscall.SIGCONT) }
	}
}

// masterOf returns the master that has the slot of a hash tag.
func masterOf(t testing.TB, masters []server, tag string) server {
	t.Helper()
	slot, err := client(t, nil, masters[0].port).ClusterKeySlot(t.Context(), tag).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range masters {
		if _, last := slots(i); slot <= last {
			return s
		}
	}
	t.Fatalf("no master has slot %d", slot)
	return server{}
}

// slots returns the slots of the i-th of three masters.
func slots(i int) (first, last int64) { return int64(i) * 16384 / 3, int64(i+1)*16384/3 - 1 }

func cluster(t testing.TB, a *tlstest.Authority) (u string, masters []server) {
	t.Helper()
	ports := freePorts(t, 6)
	nodes, bus := ports[:3], ports[3:]
	for i, port := range nodes {
		args := append(tls(t, a, port), "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus[i]), "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no")
		if a != nil {
			args = append(args, "--tls-cluster", "yes")
		}
		masters = append(masters, start(t, port, args...))
	}
	clients := make([]*redis.Client, len(nodes))
	for i, port := range nodes {
		clients[i] = client(t, a, port)
		first, last := slots(i)
		do(t, clients[i], "cluster", "addslotsrange", first, last)
		do(t, clients[i], "cluster", "set-config-epoch", i+1)
	}
	for i := 1; i < len(nodes); i++ {
		do(t, clients[0], "cluster", "meet", "127.0.0.1", nodes[i], bus[i])
	}
	for _, c := range clients {
		eventually(t, "the Cluster is whole", func() bool {
			info := c.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") && strings.Contains(info, "cluster_size:3")
		})
	}
	return address(a, nodes[0]) + fmt.Sprintf("?cluster=true&addr=127.0.0.1:%d", nodes[1]), masters
}

// Sentinel starts a master with a replica and, once the replica is in sync, a Sentinel, and returns the Sentinel's URL. kill stops
// the master. The Sentinel requires SentinelPassword.
func Sentinel(t testing.TB, a *tlstest.Authority) (u string, kill func()) {
	t.Helper()
	u, _, kill = sentinels(t, a, 1, 1)
	return u, kill
}

// ThreeSentinels starts a master with two replicas and three Sentinels, of which two must agree, without TLS. It returns the URL of all
// Sentinels. killSentinel stops the first Sentinel of the URL, and killMaster the master.
func ThreeSentinels(t testing.TB) (u string, killSentinel, killMaster func()) {
	t.Helper()
	return sentinels(t, nil, 2, 3)
}

func sentinels(t testing.TB, a *tlstest.Authority, replicas, count int) (u string, killSentinel, killMaster func()) {
	t.Helper()
	ports := freePorts(t, 1+replicas+count)
	master, watchers := ports[0], ports[1+replicas:]
	killMaster = start(t, master, tls(t, a, master)...).kill
	for _, port := range ports[1 : 1+replicas] {
		start(t, port, append(tls(t, a, port), "--replicaof", "127.0.0.1 "+strconv.Itoa(master))...)
		r := client(t, a, port)
		eventually(t, "the replica is in step", func() bool {
			return strings.Contains(r.Info(t.Context(), "replication").Val(), "master_link_status:up")
		})
	}
	for i, port := range watchers {
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d %[4]d\nsentinel auth-pass %[1]s %[3]s\n"+
			"sentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 3000\n", MasterName, master, quoted(Password), count/2+1)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{conf, "--sentinel"}, tls(t, a, port)...)
		s := run(t, port, append(args, "--bind", "127.0.0.1", "--requirepass", SentinelPassword)...)
		if i == 0 {
			killSentinel = s.kill
		}
	}
	u = address(a, watchers[0]) + "/0?master_name=" + MasterName
	for i, port := range watchers {
		if i > 0 {
			u += "&addr=" + host(port)
		}
		c := redis.NewSentinelClient(options(t, a, port, SentinelPassword))
		defer c.Close()
		eventually(t, "the Sentinel knows the replicas, which are in step, and the other Sentinels", func() bool { // it queries each server every 10 s
			all, others := c.Replicas(t.Context(), MasterName).Val(), c.Sentinels(t.Context(), MasterName).Val()
			return len(all) == replicas && len(others) == count-1 &&
				!slices.ContainsFunc(all, func(r map[string]string) bool { return r["master-link-status"] != "ok" })
		})
	}
	return u, killSentinel, killMaster
}

func quoted(s string) string { return `"` + s + `"` }

func address(a *tlstest.Authority, port int) string {
	u := url.URL{Scheme: "redis", Host: host(port), User: url.UserPassword("default", Password)}
	if a != nil {
		u.Scheme = "rediss"
	}
	return u.String()
}

func host(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// tls returns the arguments of a server that listens on the port, with TLS if a is not nil. The server requires a client
// certificate, which is redis-server's default.
func tls(t testing.TB, a *tlstest.Authority, port int) []string {
	t.Helper()
	if a == nil {
		return []string{"--port", strconv.Itoa(port)}
	}
	cert, key := a.Leaf(t, "redis-"+strconv.Itoa(port))
	return []string{
		"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", a.CAFile, "--tls-replication", "yes",
	}
}

// start runs a server that stores nothing on disk.
func start(t testing.TB, port int, args ...string) server {
	t.Helper()
	return run(t, port, append(args,
		"--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
		"--requirepass", Password, "--masterauth", Password)...)
}

// server is a running redis-server. kill stops it and waits until it has ended.
type server struct {
	port int
	cmd  *exec.Cmd
	kill func()
}

func (s server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Errorf("redis-server: %v", err)
	}
}

// run starts redis-server, waits until it listens, and stops it at the end of the test or when kill is called.
func run(t testing.TB, port int, args ...string) server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("there is no redis-server")
	}
	logFile := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // The process has its own descriptor.
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	kill := func() { _ = cmd.Process.Kill(); <-ended }
	t.Cleanup(kill)
	eventually(t, "redis-server listens", func() bool {
		select {
		case <-ended:
			text, _ := os.ReadFile(logFile)
			if strings.Contains(string(text), "'tls-port") || strings.Contains(string(text), "'--tls-") {
				t.Skip("this redis-server was built without TLS")
			}
			t.Fatalf("redis-server has ended: %s", text)
		default:
		}
		return listens(t.Context(), port)
	})
	return server{port: port, cmd: cmd, kill: kill}
}

func listens(ctx context.Context, port int) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host(port))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// client connects to one server.
func client(t testing.TB, a *tlstest.Authority, port int) *redis.Client {
	t.Helper()
	c := redis.NewClient(options(t, a, port, Password))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func options(t testing.TB, a *tlstest.Authority, port int, password string) *redis.Options {
	t.Helper()
	o := &redis.Options{Addr: host(port), Password: password, DisableIdentity: true}
	if a != nil {
		o.TLSConfig = a.Client(t)
	}
	return o
}

func do(t testing.TB, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v: %v", args, err)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(maxWait); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func freePorts(t testing.TB, n int) []int {
	t.Helper()
	out := make([]int, n)
	for i := range out {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out[i] = l.Addr().(*net.TCPAddr).Port
	}
	return out
}
