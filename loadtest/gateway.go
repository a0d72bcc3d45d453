package main

import (
	"context"
	"fmt"
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

// routes lead to the same upstream: directly, through nginx, through a gateway with real identity and Redis, with and without its
// log lines, and through the programs that do a similar job, if they are available: nginx with Lua, and Traefik with its limiter, both
// on the same Redis. create is a POST through the gateway.
type routes struct {
	direct, nginx, gateway, quiet, create route
	lua, traefik                          *route
}

// peers returns the available programs that do a similar job to the gateway.
func (d *routes) peers() []route {
	var all []route
	for _, one := range []*route{d.lua, d.traefik} {
		if one != nil {
			all = append(all, *one)
		}
	}
	return all
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
	nginx, err := stack.FindNginx(ctx, b.say)
	if err != nil {
		return d, err
	}
	upstream, err := b.startUpstream(ctx)
	if err != nil {
		return d, err
	}
	const path = "/api/v1/customers/cu_01m7zbmmn5exnr5ab2hvbd652e"
	get := load.Request(http.MethodGet, path, []string{"Authorization: Bearer " + b.platform.Env["DEMO_TEST_KEY"]}, "")
	to := func(addr string) load.Target {
		return load.Target{Addr: addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	}
	d.direct = route{name: "direct", target: to(upstream)}
	proxy, addr, err := b.platform.Nginx(ctx, nginx, upstream)
	if err != nil {
		return d, err
	}
	d.nginx = route{name: "nginx", target: to(addr), pid: proxy.PID()}
	const figures = "cpu,latency"
	b.try(ctx, figures, "nginx with Lua", func() (err error) {
		d.lua, err = b.lua(ctx, nginx, upstream, to)
		return err
	})
	b.try(ctx, figures, "Traefik with its Redis limiter", func() (err error) {
		d.traefik, err = b.traefik(ctx, upstream, to)
		return err
	})
	for _, g := range []struct {
		route       *route
		name, level string
	}{{&d.gateway, "gateway", "info"}, {&d.quiet, "gateway without log lines", "warn"}} {
		p, addr, profiles, err := b.platform.Gateway(ctx, "gateway-"+g.level, map[string]string{
			"UPSTREAM_CUSTOMERS_URL": "http://" + upstream, "UPSTREAM_BOOKINGS_URL": "http://" + upstream, "LOG_LEVEL": g.level,
		})
		if err != nil {
			return d, err
		}
		*g.route = route{name: g.name, target: to(addr), pid: p.PID(), profiles: profiles}
	}
	d.create = d.gateway
	d.create.name, d.create.target.Nth, d.create.target.Status = "gateway, POST", b.nthCreate(), http.StatusCreated
	return d, nil
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

// lua returns the route through nginx with Lua. Without the packages, there is no such route, and a note reports this.
func (b *bench) lua(ctx context.Context, nginx, upstream string, to func(addr string) load.Target) (*route, error) {
	if !stack.HasLua() {
		b.table.Note("nginx with Lua was not measured: install libnginx-mod-http-lua, lua-nginx-redis and lua-resty-core")
		return nil, nil
	}
	peer, err := b.peer(ctx)
	if err != nil {
		return nil, err
	}
	proxy, addr, err := b.platform.NginxLua(ctx, nginx, upstream, peer)
	if err != nil {
		return nil, err
	}
	one := &route{name: "nginx with Lua", target: to(addr), pid: proxy.PID()}
	_, err = load.Once(ctx, one.target)
	return one, err
}

// peer returns what nginx with Lua must know: the owner of the API key, as identity returns it to the gateway, and the gateway's key
// for the service.
func (b *bench) peer(ctx context.Context) (p stack.Peer, err error) {
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

// traefik returns the route through Traefik. Without a binary in TRAEFIK, there is no such route, and a note reports this.
func (b *bench) traefik(ctx context.Context, upstream string, to func(addr string) load.Target) (*route, error) {
	if b.Traefik == "" {
		b.table.Note("Traefik with its Redis limiter was not measured: set TRAEFIK to the path of its binary")
		return nil, nil
	}
	proxy, addr, err := b.platform.Traefik(ctx, b.Traefik, upstream)
	if err != nil {
		return nil, err
	}
	return &route{name: "Traefik", target: to(addr), pid: proxy.PID()}, nil
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
