package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// connections is how many requests run at the same time in the closed model.
const connections = 16

// rates of the open model, in requests per second.
var rates = []int{250, 500, 1000}

// route is one path to the fixed response.
type route struct {
	name     string
	target   load.Target
	pid      int
	profiles string // address of its pprof; empty: none
}

// routes lead to the same upstream: directly, through nginx, through a gateway with real identity and Redis, with and without its
// log lines, and through Traefik, if given, with its limiter on the same Redis.
type routes struct {
	direct, nginx, gateway, quiet route
	traefik                       *route
}

// gateway measures the processor time and the latency that the gateway adds to a request.
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
	b.try(ctx, "cpu,latency", "Traefik with its Redis limiter", func() (err error) {
		d.traefik, err = b.traefik(ctx, upstream, to)
		return err
	})
	for _, g := range []struct {
		route       *route
		name, level string
	}{{&d.gateway, "gateway", "info"}, {&d.quiet, "gateway without log lines", "warn"}} {
		p, addr, profiles, err := b.platform.Gateway(ctx, "gateway-"+g.level, map[string]string{
			"UPSTREAM_CUSTOMERS_URL": "http://" + upstream, "LOG_LEVEL": g.level,
		})
		if err != nil {
			return d, err
		}
		*g.route = route{name: g.name, target: to(addr), pid: p.PID(), profiles: profiles}
	}
	return d, nil
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

// processorTime measures the processor time that each route's process uses for one request, compared with nginx.
func (b *bench) processorTime(ctx context.Context, d routes) error {
	measured := []route{d.nginx, d.gateway, d.quiet}
	if d.traefik != nil {
		measured = append(measured, *d.traefik)
	}
	costs := make([]cost, len(measured))
	var sides []func(int) error
	for i, one := range measured {
		sides = append(sides, func(round int) error { return b.charge(ctx, one, round, &costs[i]) })
	}
	if err := runRounds(sides...); err != nil {
		return err
	}
	nginx := costs[0].micros()
	for i, figure := range []string{
		"gateway: key check, shared limit, headers, signed caller; CPU per request",
		"the same without its log lines (`LOG_LEVEL=warn`)",
	} {
		ours := costs[i+1].micros()
		ratio := report.Ratio(ours, nginx)
		r := report.Row{
			Figure: figure, Ours: fmt.Sprintf("%.1f µs", ours), Baseline: fmt.Sprintf("nginx, plain proxy: %.1f µs", nginx),
			Ratio: ratio, Show: "cpu",
		}
		if i == 0 {
			r.Aim = report.Aim{Text: "≤ 3 ×", Value: ratio, AtMost: 3}
		}
		b.table.Add(r)
	}
	if d.traefik != nil {
		ours, traefik := costs[1].micros(), costs[3].micros()
		b.table.Add(report.Row{
			Figure: "gateway compared with Traefik and its Redis limiter, CPU per request", Ours: fmt.Sprintf("%.1f µs", ours),
			Baseline: fmt.Sprintf("Traefik: %.1f µs", traefik), Ratio: report.Ratio(ours, traefik), Show: "cpu",
		})
	}
	return nil
}

// cost is the processor time of a number of requests.
type cost struct {
	used     time.Duration
	requests int
}

func (c cost) micros() float64 {
	return report.Ratio(float64(c.used.Microseconds()), float64(c.requests))
}

// charge adds one round of a route to its cost.
func (b *bench) charge(ctx context.Context, one route, round int, sum *cost) error {
	if _, err := load.Closed(ctx, one.target, connections, warmUp); err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	before, err := stack.CPU(one.pid)
	if err != nil {
		return err
	}
	done := b.profile(ctx, fmt.Sprintf("%s-%d", one.name, round), one.profiles)
	s, err := load.Closed(ctx, one.target, connections, b.slice())
	if err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	after, err := stack.CPU(one.pid)
	if err != nil {
		return err
	}
	done()
	spent := cost{after - before, s.Requests}
	b.say("%s: %.1f µs of CPU per request at %.0f req/s", one.name, spent.micros(), s.Rate())
	sum.used, sum.requests = sum.used+spent.used, sum.requests+spent.requests
	return nil
}

const warmUp = time.Second

// latency measures how much time nginx, the gateway, and Traefik add to the direct call, at each rate.
func (b *bench) latency(ctx context.Context, d routes) error {
	measured := []route{d.direct, d.nginx, d.gateway}
	if d.traefik != nil {
		measured = append(measured, *d.traefik)
	}
	for _, rate := range rates {
		samples := make([]load.Sample, len(measured))
		var sides []func(int) error
		for i, one := range measured {
			sides = append(sides, func(int) error {
				s, err := b.wait(ctx, one, load.Schedule{Rate: rate})
				samples[i] = load.Join(samples[i], s)
				return err
			})
		}
		if err := runRounds(sides...); err != nil {
			return err
		}
		b.addLatency(rate, 50, time.Millisecond, samples)
		b.addLatency(rate, 99, 3*time.Millisecond, samples)
	}
	return nil
}

// wait measures one round of a route.
func (b *bench) wait(ctx context.Context, one route, at load.Schedule) (load.Sample, error) {
	if _, err := load.Open(ctx, one.target, at, warmUp/2); err != nil {
		return load.Sample{}, fmt.Errorf("%s: %w", one.name, err)
	}
	s, err := load.Open(ctx, one.target, at, b.slice())
	if err != nil {
		return s, fmt.Errorf("%s: %w", one.name, err)
	}
	b.say("%s at %d req/s: p50 %s, p99 %s", one.name, at.Rate, report.Millis(s.Percentile(50)), report.Millis(s.Percentile(99)))
	return s, nil
}

// addLatency compares one percentile of the direct call, nginx, and the gateway. The aim is for the highest rate. The ratio uses
// the total times, because the time that nginx adds is too small for a divisor.
func (b *bench) addLatency(rate int, percentile float64, aim time.Duration, samples []load.Sample) {
	direct, nginx, ours := samples[0].Percentile(percentile), samples[1].Percentile(percentile), samples[2].Percentile(percentile)
	r := report.Row{
		Figure:   fmt.Sprintf("gateway: p%.0f added at %d req/s", percentile, rate),
		Ours:     fmt.Sprintf("%s (%s in all)", report.Millis(ours-direct), report.Millis(ours)),
		Baseline: fmt.Sprintf("nginx: %s (%s in all); direct: %s", report.Millis(nginx-direct), report.Millis(nginx), report.Millis(direct)),
		Ratio:    report.Ratio(float64(ours), float64(nginx)), Show: "latency",
	}
	if len(samples) > 3 {
		traefik := samples[3].Percentile(percentile)
		r.Baseline += fmt.Sprintf("; Traefik: %s (%s in all)", report.Millis(traefik-direct), report.Millis(traefik))
	}
	if rate == rates[len(rates)-1] {
		r.Aim = report.Aim{Text: "< " + report.Millis(aim), Value: float64(ours - direct), AtMost: float64(aim)}
	}
	b.table.Add(r)
}
