package main

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// cost is the processor time of a number of requests: of the measured process, and of Redis.
type cost struct {
	used, redis time.Duration
	requests    int
}

func (c cost) plus(more cost) cost {
	return cost{c.used + more.used, c.redis + more.redis, c.requests + more.requests}
}

func (c cost) since(before cost) cost {
	return cost{c.used - before.used, c.redis - before.redis, c.requests - before.requests}
}

// micros returns the microseconds per request.
func (c cost) micros() report.Quantity { return c.each(c.used) }

func (c cost) each(used time.Duration) report.Quantity {
	return report.Microseconds(report.Ratio(float64(used.Microseconds()), float64(c.requests)))
}

// withRedis formats the time together with that of Redis.
func (c cost) withRedis() string {
	return fmt.Sprintf("%s (Redis %s)", c.micros(), c.each(c.redis))
}

// aims are the limits of the gateway's processor time: relative to nginx, to nginx with Lua, and to Traefik, and for a POST.
const (
	nginxAim    = 3
	luaAim      = 1
	traefikAim  = 0.5
	createLimit = 180 // µs
)

// processorTime measures the processor time that each route's process uses for one request, and compares the gateway with the others.
func (b *bench) processorTime(ctx context.Context, d routes) error {
	measured := append([]route{d.nginx, d.gateway, d.quiet, d.create}, d.peers()...)
	costs := make([]cost, len(measured))
	var sides []func(int) error
	for i, one := range measured {
		sides = append(sides, func(round int) error {
			spent, err := b.charge(ctx, one, round)
			costs[i] = costs[i].plus(spent)
			return err
		})
	}
	if err := runRounds(sides...); err != nil {
		return err
	}
	nginx, gateway, quiet, create := costs[0], costs[1], costs[2], costs[3]
	const same = "gateway: key check, shared limit, headers, signed caller; CPU per request"
	b.addCost(same, gateway, "nginx, plain proxy", nginx, nginxAim)
	b.addCost("gateway without its log lines (`LOG_LEVEL=warn`), CPU per request", quiet, "nginx, plain proxy", nginx, 0)
	peers := costs[4:]
	if d.lua != nil {
		b.addCost("gateway compared with nginx with Lua doing the same job, CPU per request", gateway, "nginx with Lua", peers[0], luaAim)
		peers = peers[1:]
	}
	if d.traefik != nil {
		b.addCost("gateway compared with Traefik and its Redis limiter, CPU per request", gateway, "Traefik", peers[0], traefikAim)
	}
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("gateway: POST with a body of %d bytes and an Idempotency-Key, whose response is cached; CPU per request", createSize),
		Value:  create.micros(), Ours: create.withRedis(), Aim: report.AtMost(create.micros(), createLimit), Show: "cpu",
	})
	return nil
}

// addCost compares the gateway with another program. aim is the largest ratio; 0: none.
func (b *bench) addCost(figure string, ours cost, name string, other cost, aim float64) {
	ratio := report.Ratio(ours.micros().Value, other.micros().Value)
	r := report.Row{
		Figure: figure, Value: ours.micros(), Ours: ours.withRedis(), Baseline: name + ": " + other.withRedis(), Ratio: ratio, Show: "cpu",
	}
	if aim > 0 {
		r.Aim = report.Aim{Text: fmt.Sprintf("≤ %.1f ×", aim), Value: ratio, AtMost: aim}
	}
	b.table.Add(r)
}

// charge measures one round of a route.
func (b *bench) charge(ctx context.Context, one route, round int) (spent cost, err error) {
	if _, err := load.Closed(ctx, one.target, connections, warmUp); err != nil {
		return spent, fmt.Errorf("%s: %w", one.name, err)
	}
	before, err := b.spent(one)
	if err != nil {
		return spent, err
	}
	done := b.profile(ctx, fmt.Sprintf("%s-%d", one.name, round), one.profiles)
	s, err := load.Closed(ctx, one.target, connections, b.slice())
	if err != nil {
		return spent, fmt.Errorf("%s: %w", one.name, err)
	}
	after, err := b.spent(one)
	if err != nil {
		return spent, err
	}
	done()
	spent = after.since(before)
	spent.requests = s.Requests
	b.say("%s: %s of CPU per request at %.0f req/s", one.name, spent.withRedis(), s.Rate())
	return spent, nil
}

// spent returns the processor time of a route and of Redis so far.
func (b *bench) spent(one route) (c cost, err error) {
	if c.used, err = stack.CPU(one.pid); err != nil {
		return c, err
	}
	redis, err := b.platform.PID("redis")
	if err != nil {
		return c, err
	}
	c.redis, err = stack.CPU(redis)
	return c, err
}
