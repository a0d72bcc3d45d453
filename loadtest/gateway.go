package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/stack"
)

// connections is how many requests run at the same time in the closed model.
const connections = 16

const warmUp = time.Second

// route is one path to the fixed response.
type route struct {
	name     string
	target   load.Target
	pid      int
	profiles string // address of its pprof; empty: none
}

// routes lead to the same upstream: directly, through a gateway with real identity and Redis, through the peers, and through gateways
// with other settings: quiet writes no log lines, withReads has each read in the request log, and withoutReads none. create is a POST
// through the gateway.
type routes struct {
	direct, gateway, quiet, withReads, withoutReads, create route
	peers                                                   []peer
}

// peer is a program that the gateway is compared with.
type peer struct {
	route
	aim float64 // of the gateway's processor time, relative to that of the peer
}

// gateway measures the processor time and the latency that the gateway adds to a request, and the memory of its connections.
func (b *bench) gateway(ctx context.Context) error {
	d, err := b.openRoutes(ctx)
	if err != nil {
		return err
	}
	if b.wants("cpu") {
		b.try(ctx, "cpu", "gateway: CPU per request", func() error { return b.processorTime(ctx, d) })
	}
	if b.wants("latency") {
		b.try(ctx, "latency", "gateway: added latency", func() error { return b.latency(ctx, d) })
	}
	if b.wants("connections") {
		b.try(ctx, "connections", "gateway: memory per connection", func() error { return b.idleConnections(ctx, d.gateway) })
	}
	return nil
}

func (b *bench) openRoutes(ctx context.Context) (d routes, err error) {
	upstream, err := b.startUpstream(ctx)
	if err != nil {
		return d, err
	}
	d.direct = route{name: "direct", target: b.get(upstream)}
	for _, g := range []struct {
		route         *route
		name, process string
		settings      map[string]string
	}{
		{&d.gateway, "gateway", "gateway-info", nil},
		{&d.quiet, "gateway without log lines", "gateway-warn", map[string]string{"LOG_LEVEL": "warn"}},
		{&d.withReads, "gateway, each read in the request log", "gateway-reads", map[string]string{"REQUEST_LOG_READS": "1"}},
		{&d.withoutReads, "gateway, no read in the request log", "gateway-no-reads", map[string]string{"REQUEST_LOG_READS": "0"}},
	} {
		settings := map[string]string{"UPSTREAM_CUSTOMERS_URL": "http://" + upstream, "UPSTREAM_BOOKINGS_URL": "http://" + upstream, "LOG_LEVEL": "info"}
		maps.Copy(settings, g.settings)
		p, addr, profiles, err := b.platform.Gateway(ctx, g.process, settings)
		if err != nil {
			return d, err
		}
		*g.route = route{name: g.name, target: b.get(addr), pid: p.PID(), profiles: profiles}
	}
	d.create = d.gateway
	d.create.name, d.create.target.Nth, d.create.target.Status = "gateway, POST", b.nthCreate(), http.StatusCreated
	if b.wants("cpu") || b.wants("latency") {
		d.peers = b.openPeers(ctx, upstream)
	}
	return d, nil
}

// openPeers starts the peers in front of the upstream.
func (b *bench) openPeers(ctx context.Context, upstream string) (all []peer) {
	for _, one := range []struct {
		name  string
		aim   float64
		start func() (*stack.Process, string, error)
	}{
		{"nginx", 3, func() (*stack.Process, string, error) { return b.platform.Nginx(ctx, upstream) }},
		{"nginx with Lua", 1, func() (*stack.Process, string, error) {
			owner, err := b.keyOwner(ctx)
			if err != nil {
				return nil, "", err
			}
			return b.platform.NginxLua(ctx, upstream, owner)
		}},
	} {
		if r, ok := b.openPeer(ctx, one.name, one.start); ok {
			all = append(all, peer{route: r, aim: one.aim})
		}
	}
	return all
}

// openPeer starts a peer and sends a request through it. A note says what to do if the program is not installed.
func (b *bench) openPeer(ctx context.Context, name string, start func() (*stack.Process, string, error)) (r route, ok bool) {
	b.try(ctx, "cpu,latency", name, func() error {
		process, addr, err := start()
		if errors.Is(err, stack.ErrMissing) {
			b.table.Note("%s was not measured: %v", name, err)
			return nil
		}
		if err != nil {
			return err
		}
		r = route{name: name, target: b.get(addr), pid: process.PID()}
		_, err = load.Once(ctx, r.target)
		ok = err == nil
		return err
	})
	return r, ok
}

// get returns the GET of a customer at an address.
func (b *bench) get(addr string) load.Target {
	request := load.Request(http.MethodGet, "/api/v1/customers/cu_01m7zbmmn5exnr5ab2hvbd652e", []string{"Authorization: Bearer " + b.platform.Env["DEMO_TEST_KEY"]}, "")
	return load.Target{Addr: addr, Nth: func(int) []byte { return request }, Status: http.StatusOK}
}

// createSize is the size of the body that is sent through the gateway, in bytes.
const createSize = 1024

// nthCreate returns the POST of a booking with another Idempotency-Key for each call, so that no response is a replay.
func (b *bench) nthCreate() func(int) []byte {
	const form = `{"customer_id":"cu_01m7zbmmn5exnr5ab2hvbd652e","package_id":"pkg_01m7zbmmn5exnr5ab2hvbd6532","event_date":"2031-05-05",` +
		`"event_start_time":"10:00","event_type":"Team outing","guest_count":4,"notes":"%s"}`
	body := fmt.Sprintf(form, strings.Repeat("x", createSize-len(form)+len("%s")))
	var sent atomic.Int64
	return func(int) []byte {
		return load.Request(http.MethodPost, "/api/v1/bookings", []string{
			"Authorization: Bearer " + b.platform.Env["DEMO_TEST_KEY"], fmt.Sprintf("Idempotency-Key: cpu-%d", sent.Add(1)),
		}, body)
	}
}

// keyOwner returns what nginx with Lua must know: the owner of the API key, as identity returns it to the gateway, and the gateway's
// key for the service.
func (b *bench) keyOwner(ctx context.Context) (p stack.Peer, err error) {
	settings, err := b.platform.Settings("gateway")
	if err != nil {
		return p, err
	}
	keys, err := caller.ParseKeys(settings["CALLER_SIGN_KEYS"])
	if err != nil {
		return p, err
	}
	p = stack.Peer{Limit: stack.Limit, Target: "customers", Scope: "read:customers", Token: b.platform.Env["DEMO_TEST_KEY"]}
	if len(keys[p.Target]) == 0 {
		return p, fmt.Errorf("%w: the gateway has no key for %s", errResult, p.Target)
	}
	p.Key = keys[p.Target][0]
	base, _, _ := strings.Cut(strings.TrimPrefix(b.platform.Env["BASE_URL"], "http://"), "/")
	s := &shop{addr: base, key: p.Token}
	var me struct {
		ID     string     `json:"id"`
		Tenant ids.Tenant `json:"tenant_id"`
		Scopes []string   `json:"scopes"`
	}
	if err := s.get(ctx, "/me", &me); err != nil {
		return p, err
	}
	if !slices.Contains(me.Scopes, p.Scope) {
		return p, fmt.Errorf("%w: the API key lacks the scope %s", errResult, p.Scope)
	}
	p.Caller = caller.Caller{
		Tenant: me.Tenant, Timezone: "America/New_York", Currency: "USD", PolicyVersion: 1, Mode: caller.Test, Credential: me.ID, Kind: "api_key",
		Scopes: me.Scopes,
	}
	return p, nil
}

func (b *bench) startUpstream(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	addr, err := stack.FreeAddr()
	if err != nil {
		return "", err
	}
	_, err = b.platform.Run(ctx, "upstream", "http://"+addr+"/", nil, self, upstreamCommand, addr)
	return addr, err
}
