package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/libs/caller"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// gateways are programs in front of the same upstream: a gateway with real identity and Redis, and the peers.
type gateways struct {
	upstream       string
	direct, normal side
	peers          []side // their names are those of their processes
}

const customerPath = "/customers/cu_01m7zbmmn5exnr5ab2hvbd652e"

// openGateways starts the programs once.
func (f *figure) openGateways() *gateways {
	if f.gateways != nil {
		return f.gateways
	}
	self, err := os.Executable()
	f.check(err)
	upstream, err := stack.FreeAddr()
	f.check(err)
	f.check(f.platform.Run(f.ctx, "upstream", "http://"+upstream+"/", nil, self, upstreamCommand, upstream))
	g := &gateways{upstream: upstream, direct: f.atGateway("direct", upstream, "")}
	g.normal = f.startGateway("gateway-info", upstream, "info")
	f.openPeer(g, "nginx", func() (string, error) { return f.platform.Nginx(f.ctx, upstream) })
	f.openPeer(g, "nginx-lua", func() (string, error) { return f.platform.NginxLua(f.ctx, upstream, f.keyOwner()) })
	f.gateways = g
	return g
}

// openPeer starts a peer. A note says what to do if the program is not installed, and one that does not start is a
// failed figure.
func (f *figure) openPeer(g *gateways, name string, start func() (string, error)) {
	switch addr, err := start(); {
	case errors.Is(err, stack.ErrMissing):
		f.table.Note("%s was not measured: %v", name, err)
	case err != nil:
		f.table.Fail(name, f.name, err)
	default:
		g.peers = append(g.peers, f.atGateway(name, addr, ""))
	}
}

// label returns the name of a peer in the table.
func label(peer *side) string { return strings.Replace(peer.name, "-lua", " with Lua", 1) }

// atGateway returns the GET of a customer at an address.
func (b *bench) atGateway(name, addr, profiles string) side {
	return side{
		name: name, detail: profiles, target: tenant{addr: addr, key: b.demo("DEMO_TEST_KEY").key}.target(same(customerPath)),
	}
}

// startGateway starts another gateway of the platform in front of the upstream.
func (f *figure) startGateway(name, upstream, level string) side {
	addr, profiles, err := f.platform.Gateway(f.ctx, name, map[string]string{
		"UPSTREAM_CUSTOMERS_URL": "http://" + upstream, "UPSTREAM_BOOKINGS_URL": "http://" + upstream, "LOG_LEVEL": level,
	})
	f.check(err)
	return f.atGateway(name, addr, profiles)
}

// keyOwner returns what nginx with Lua must know: the owner of the API key, as identity returns it to the gateway, and
// the gateway's key for the service.
func (f *figure) keyOwner() stack.Peer {
	keys, err := caller.ParseKeys(f.settingsOf("gateway")["CALLER_SIGN_KEYS"])
	f.check(err)
	demo := f.demo("DEMO_TEST_KEY")
	me := f.me(demo)
	p := stack.Peer{Limit: stack.Limit, Target: "customers", Scope: "read:customers", Token: demo.key}
	p.Caller = caller.Caller{
		Tenant: me.Tenant, Timezone: "America/New_York", Currency: "USD", PolicyVersion: 1, Mode: caller.Test,
		Credential: me.ID, Kind: "api_key", Scopes: me.Scopes,
	}
	if len(keys[p.Target]) == 0 || !slices.Contains(me.Scopes, p.Scope) {
		f.check(fmt.Errorf("%w: no key for %s, or the API key lacks %s", errResult, p.Target, p.Scope))
	}
	p.Key = keys[p.Target][0]
	return p
}

// createSize is the size of the body of a POST that is sent through the gateway, in bytes.
const createSize = 1024

// gatewayCPU compares the processor time that a gateway uses for a request with that of its peers.
func (f *figure) gatewayCPU() {
	g := f.openGateways()
	normal, create, peers := g.normal, g.normal, slices.Clone(g.peers)
	const form = `{"event_date":"2031-05-05","notes":%q}`
	body := fmt.Sprintf(form, strings.Repeat("x", createSize-len(form)))
	demo := tenant{addr: g.normal.target.Addr, key: f.demo("DEMO_TEST_KEY").key}
	create.target = demo.post(func(n int) (path, key, text string) {
		return "/bookings", fmt.Sprintf("cpu-%d", n), body // with another key each, so that no response is a replay
	})
	sides := []*side{&normal, &create}
	for i := range peers {
		sides = append(sides, &peers[i])
	}
	f.alternate(sides...)
	add := func(figure string, s, peer *side, t report.Target) {
		row := report.Row{Figure: figure + "; CPU per request", Value: micros(s, added(s.name)), Ours: withRedis(s)}
		row.Target = t
		if peer != nil {
			row.Figure, row.Baseline = row.Figure+", compared with "+label(peer), label(peer)+": "+withRedis(peer)
			row.Ratio = report.Ratio(row.Value.Value, micros(peer, added(peer.name)).Value)
		}
		f.add(row)
	}
	const work = "gateway: key check, shared limit, headers, signed caller, log line"
	for i := range peers {
		most := map[string]float64{"nginx": 3, "nginx-lua": 1}[peers[i].name]
		add(work, &normal, &peers[i], report.Target{MostRatio: most})
	}
	figure := fmt.Sprintf(
		"gateway: POST with a body of %d bytes and an Idempotency-Key, whose response is cached", createSize,
	)
	add(figure, &create, nil, report.Target{Most: 180})
}

// micros returns the processor time of a process for each request of a side.
func micros(s *side, process string) report.Quantity {
	return report.Quantity{Value: report.Ratio(float64(s.used[process].Microseconds()), float64(s.Requests)), Unit: "µs"}
}

// withRedis formats the processor time of the side's process together with that of Redis.
func withRedis(s *side) string {
	return fmt.Sprintf("%s (Redis %s)", micros(s, added(s.name)), micros(s, "redis"))
}

// latency measures how much time the gateway and its peers add to the direct call. The ratios use the total times,
// because the time that nginx adds is too small for a divisor.
func (f *figure) latency() {
	const rate = 1000
	g := f.openGateways()
	direct, ours, peers := g.direct, g.normal, slices.Clone(g.peers)
	sides := []*side{&direct, &ours}
	for i := range peers {
		sides = append(sides, &peers[i])
	}
	for _, s := range sides {
		s.pace, s.timed = load.Pace{Conns: openConnections, Rate: rate}, true
	}
	f.alternate(sides...)
	for i, percentile := range []float64{50, 99} {
		total := ours.Percentile(percentile)
		row := report.Row{
			Figure:   fmt.Sprintf("gateway: p%.0f added at %d req/s", percentile, rate),
			Value:    report.Milliseconds(total - direct.Percentile(percentile)),
			Baseline: "direct: " + p(direct.Sample, percentile), Target: report.Target{Most: []float64{0.25, 1}[i]},
		}
		row.Ours = fmt.Sprintf("%s (%s in all)", row.Value, p(ours.Sample, percentile))
		f.add(row)
		title := row.Figure
		for _, peer := range sides[2:] {
			other := peer.Percentile(percentile)
			row.Figure, row.Target = title+", compared with "+label(peer), report.Target{}
			row.Baseline = fmt.Sprintf("%s: %s in all", label(peer), p(peer.Sample, percentile))
			row.Ratio = report.Ratio(float64(total), float64(other))
			f.add(row)
		}
	}
}

// openConnections limits the number of running requests in the open model. A request without a free connection waits,
// and its time counts.
const openConnections = 64

// connections measures the memory that the gateway uses for each keep-alive connection that has been served and waits
// for its next request. The run fails unless every connection is served twice.
func (f *figure) connections() {
	const clients, otherFiles = 10_000, 500
	var files syscall.Rlimit
	f.check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if files.Max < clients+otherFiles { // both processes raise their own limit up to this one
		f.check(fmt.Errorf(
			"%w: at most %d open files are allowed, and %d are needed: raise ulimit -Hn", errResult, files.Max,
			clients+otherFiles,
		))
	}
	one := f.openGateways().normal
	f.send(&one, warmUp)
	before := f.held(one.detail)
	after := before
	f.check(load.Idle(f.ctx, one.target, clients, func() error {
		f.say("%d connections are open", clients)
		after = f.held(one.detail)
		return nil
	}))
	f.add(report.Row{
		Figure: fmt.Sprintf("gateway: memory per idle client connection, %d open and all of them served", clients),
		Value:  report.Quantity{Value: (after - before) / clients / 1024, Unit: "KiB"}, Target: report.Target{Most: 16},
	})
}

// noisy compares the latency of a tenant's requests alone with their latency next to a tenant that sends 20 times its
// limit through three gateways. Each response to the neighbor must be of success. It sends enough for a 99th percentile
// that a few slow responses do not decide.
func (f *figure) noisy() {
	const limit, rate, count = 3000, 1000, 3
	f.identity("tenant", "limits", "--tenant", "demo", "--json", "--requests-per-minute", strconv.Itoa(limit))
	upstream := f.openGateways().upstream
	quiet := side{name: "neighbor", pace: load.Pace{Conns: openConnections, Rate: 200}, timed: true}
	var noise []load.Target
	for n := range count {
		one := f.startGateway("gateway-noisy-"+strconv.Itoa(n), upstream, "warn")
		one.target.Refused = http.StatusTooManyRequests
		noise = append(noise, one.target)
		quiet.target = tenant{addr: one.target.Addr, key: f.demo("OTHER_TEST_KEY").key}.target(same(customerPath))
	}
	crowded := quiet
	runRounds(func() { f.serve(&quiet) }, func() {
		var senders errgroup.Group
		for _, one := range noise {
			senders.Go(func() error {
				_, err := load.Send(f.ctx, one, load.Pace{Conns: openConnections, Rate: rate / count}, f.slice()+2*warmUp)
				return err
			})
		}
		f.serve(&crowded)
		f.check(senders.Wait())
	})
	f.identity("tenant", "limits", "--tenant", "demo", "--json", "--reset")
	for _, percentile := range []float64{50, 99} {
		row := report.Row{
			Figure: fmt.Sprintf(
				"a tenant next to another that sends %d req/s, 20 times its limit, through %d gateways: p%.0f", rate, count,
				percentile,
			),
			Value: report.Milliseconds(crowded.Percentile(percentile)), Baseline: "alone: " + p(quiet.Sample, percentile),
			Ratio: report.Ratio(float64(crowded.Percentile(percentile)), float64(quiet.Percentile(percentile))),
		}
		if percentile == 99 {
			row.Target.MostRatio = 1.5
		}
		f.add(row)
	}
}
