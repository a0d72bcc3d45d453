package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"
)

// nemesis makes processes, networks and servers of a platform fail. A proxy is in each connection between a client or a service and
// another service, PostgreSQL, Redis or Stripe. Kafka's clients connect to the address that the broker names, without a proxy.
type nemesis struct {
	p       *platform
	proxies *toxiproxy.ApiServer
	links   []*toxiproxy.Proxy
	pair    *pgtest.Pair // nil: a single server
	second  []*replica   // of bookings, customers and the gateway
	faults  []func(t *testing.T, h *historyRun) string

	mu     sync.Mutex
	struck map[string]int
}

// newNemesis starts a platform with proxies. A long run has a synchronous standby and, if it is installed, Apache Kafka.
func newNemesis(t *testing.T, long bool, faults ...seeded) (*platform, *nemesis) {
	t.Helper()
	n := &nemesis{struck: map[string]int{}}
	n.proxies = toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	n.faults = []func(*testing.T, *historyRun) string{n.kill, n.kill, n.stop, n.stop, n.cut, n.cut, n.flush}
	settings := []string{"KAFKA=embedded"}
	if long {
		n.pair = pgtest.StartPair(t, true)
		settings = []string{"DATABASE_URL=" + n.pair.URL}
		n.faults = append(n.faults, n.clock, n.restart, n.failover)
	}
	var err error
	if n.p, err = newPlatform(settings...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.p.remove)
	for _, f := range faults {
		if err := os.Rename(f.build(t), filepath.Join(n.p.root, "bin", f.service)); err != nil {
			t.Fatal(err)
		}
	}
	for _, service := range proto.ServiceNames() {
		n.wrap(t, service)
	}
	if err := n.p.up(); err != nil {
		t.Fatal(err)
	}
	for _, service := range proto.ServiceNames() {
		n.between(t, service)
	}
	for _, service := range proto.ServiceNames() { // from now on, with the proxies
		n.p.kill(t, service)
	}
	n.p.as(t, "DEMO_TEST_KEY")
	n.replicate(t)
	return n.p, n
}

// replicate starts a second process of some services, with the proxies of the first one.
func (n *nemesis) replicate(t *testing.T) {
	t.Helper()
	var upstreams []string
	for _, service := range []string{"bookings", "customers", "gateway"} { // the gateway last
		r := newReplica(t, service, filepath.Join(n.p.root, "bin", service+".program"), upstreams...)
		r.start(t, n.p)
		t.Cleanup(r.stop)
		n.second = append(n.second, r)
		_, port, _ := strings.Cut(r.address, ":")
		upstreams = append(upstreams, "UPSTREAM_"+strings.ToUpper(service)+"_URL=http://127.0.0.1:"+n.link(t, "gateway 2 to "+service, port))
	}
}

// wrap puts a script in the place of a service's executable. It reads variables from a file that does not exist yet.
func (n *nemesis) wrap(t *testing.T, service string) {
	t.Helper()
	path := filepath.Join(n.p.root, "bin", service)
	script := "#!/bin/sh\nif [ -r \"$0.env\" ]; then . \"$0.env\"; fi\nexec \"$0.program\" \"$@\"\n"
	if err := os.Rename(path, path+".program"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// proxied are the variables with addresses that a proxy can replace, and addresses the places of ports in them.
var (
	proxied   = regexp.MustCompile(`^(UPSTREAM_[A-Z]+_URL|(WORKER_)?DATABASE_URL|REDIS_URL|STRIPE_URL)$`)
	addresses = regexp.MustCompile(`(127\.0\.0\.1:|port=|%2C)([0-9]{4,5})\b`)
)

// between puts a proxy into each connection of a service.
func (n *nemesis) between(t *testing.T, service string) {
	t.Helper()
	env, err := readEnv(n.p.path("services", service+".env"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	ports := map[string]string{} // of proxies by those of servers
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !proxied.MatchString(name) {
			continue
		}
		value := addresses.ReplaceAllStringFunc(env[name], func(found string) string {
			m := addresses.FindStringSubmatch(found)
			if ports[m[2]] == "" {
				ports[m[2]] = n.link(t, service+" to "+strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "UPSTREAM_"), "_URL")), m[2])
			}
			return m[1] + ports[m[2]]
		})
		fmt.Fprintf(&script, "export %s='%s'\n", name, value)
	}
	if err := os.WriteFile(filepath.Join(n.p.root, "bin", service+".env"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// link starts a proxy and returns its port.
func (n *nemesis) link(t *testing.T, name, port string) string {
	t.Helper()
	proxy := toxiproxy.NewProxy(n.proxies, name, "127.0.0.1:0", "127.0.0.1:"+port)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	n.links = append(n.links, proxy)
	return proxy.Listen[strings.LastIndex(proxy.Listen, ":")+1:]
}

// bases returns the base URLs of the two gateways for clients with a credential, through proxies.
func (n *nemesis) bases(t *testing.T, session string) (urls [2]string) {
	t.Helper()
	u, err := url.Parse(n.p.env["BASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	_, other, _ := strings.Cut(n.second[len(n.second)-1].address, ":")
	for i, port := range []string{u.Port(), other} {
		u.Host = "127.0.0.1:" + n.link(t, session+" to gateway", port)
		urls[i] = u.String()
	}
	return urls
}

// strike lets the clients work for a moment, and then makes something fail.
func (n *nemesis) strike(t *testing.T, h *historyRun) {
	time.Sleep(time.Duration(500+rand.IntN(2000)) * time.Millisecond)
	if len(n.faults) == 0 {
		return
	}
	if kind := n.faults[rand.IntN(len(n.faults))](t, h); kind != "" {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.struck[kind]++
	}
}

func (n *nemesis) counts() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.struck)
}

// end waits until everything runs again.
func (n *nemesis) end(t *testing.T) {
	t.Helper()
	n.p.as(t, "DEMO_TEST_KEY")
}

// victims are the processes that can be killed or stopped.
func (n *nemesis) victims() []string {
	list := append([]string{"redis", n.p.broker()}, proto.ServiceNames()...)
	if n.p.pid("postgres") != 0 {
		list = append(list, "postgres")
	}
	if n.p.pid("stripe") != 0 {
		list = append(list, "stripe")
	}
	return list
}

// kill kills a process, which the supervisor starts again, or a replica.
func (n *nemesis) kill(t *testing.T, _ *historyRun) string {
	if rand.IntN(5) == 0 {
		r := n.second[rand.IntN(len(n.second))]
		_ = r.cmd.Process.Kill()
		r.killed(t)
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		r.start(t, n.p)
		return "kill"
	}
	list := n.victims()
	victim := list[rand.IntN(len(list))]
	n.p.kill(t, victim)
	if victim == n.p.broker() {
		return "kill broker"
	}
	return "kill"
}

// stop makes a process silent for a while. PostgreSQL's processes go on when its first one is stopped, so it is not one of them.
func (n *nemesis) stop(t *testing.T, _ *historyRun) string {
	list := slices.DeleteFunc(n.victims(), func(name string) bool { return name == "postgres" })
	victim := list[rand.IntN(len(list))]
	pid := n.p.pid(victim)
	if rand.IntN(5) == 0 {
		pid = n.second[rand.IntN(len(n.second))].cmd.Process.Pid
	}
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return ""
	}
	time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Errorf("continue %s: %v", victim, err)
	}
	if victim == n.p.broker() {
		return "stop broker"
	}
	return "stop"
}

// failover kills the primary, sometimes while commits wait for the standby, and promotes the standby. The killed server becomes the new
// standby.
func (n *nemesis) failover(*testing.T, *historyRun) string {
	if rand.IntN(2) == 0 {
		n.pair.Delay()
		time.Sleep(300 * time.Millisecond)
	}
	n.pair.Kill()
	n.pair.Promote()
	n.pair.Rejoin()
	return "failover"
}

// restart ends a service gracefully. The supervisor starts it again.
func (n *nemesis) restart(t *testing.T, _ *historyRun) string {
	list := proto.ServiceNames()
	n.p.signal(t, list[rand.IntN(len(list))], syscall.SIGTERM)
	return "restart"
}

// cut makes one or several connections fail for a while: they are reset, silent, slow, or break in the middle of a message.
func (n *nemesis) cut(t *testing.T, _ *historyRun) string {
	kind := [][2]string{{"reset_peer", `{"timeout":0}`}, {"timeout", `{"timeout":0}`}, {"latency", `{"latency":300,"jitter":200}`}, {"limit_data", fmt.Sprintf(`{"bytes":%d}`, 100+rand.IntN(5000))}}[rand.IntN(4)]
	first := rand.IntN(len(n.links))
	var cuts []*toxiproxy.Proxy
	for i := range 1 + rand.IntN(3) {
		link := n.links[(first+i)%len(n.links)]
		toxic := fmt.Sprintf(`{"name":"cut","type":%q,"stream":%q,"attributes":%s}`, kind[0], []string{"upstream", "downstream"}[rand.IntN(2)], kind[1])
		if _, err := link.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Error(err)
			continue
		}
		cuts = append(cuts, link)
	}
	time.Sleep(time.Duration(200+rand.IntN(2000)) * time.Millisecond)
	for _, link := range cuts {
		if err := link.Toxics.RemoveToxic(t.Context(), "cut"); err != nil {
			t.Error(err)
		}
	}
	return "cut"
}

// flush deletes everything in Redis.
func (n *nemesis) flush(t *testing.T, _ *historyRun) string {
	client := n.p.redis(t)
	defer func() { _ = client.Close() }()
	if client.FlushAll(t.Context()).Err() != nil {
		return ""
	}
	return "flush Redis"
}

// clock moves the test clock forward, or returns to real time.
func (n *nemesis) clock(t *testing.T, h *historyRun) string {
	if rand.IntN(4) == 0 {
		if a, err := h.settler.send(t, http.MethodDelete, "/test-clock", "", unique("clock"), ""); err != nil || a.Status >= 300 {
			return ""
		}
		return "clock"
	}
	a, err := h.settler.send(t, http.MethodGet, "/test-clock", "", "", "")
	var clock struct{ Now time.Time }
	if err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &clock) != nil {
		return ""
	}
	body := fmt.Sprintf(`{"now":%q}`, clock.Now.Add(time.Duration(10+rand.IntN(120))*time.Minute).Format(time.RFC3339))
	if a, err = h.settler.send(t, http.MethodPost, "/test-clock", body, unique("clock"), ""); err != nil || a.Status >= 300 {
		return ""
	}
	return "clock"
}
