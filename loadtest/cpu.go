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

// micros returns the microseconds per request.
func (c cost) micros() report.Quantity { return c.each(c.used) }

func (c cost) each(used time.Duration) report.Quantity {
	return report.Microseconds(report.Ratio(float64(used.Microseconds()), float64(c.requests)))
}

// withRedis formats the time together with that of Redis.
func (c cost) withRedis() string {
	return fmt.Sprintf("%s (Redis %s)", c.micros(), c.each(c.redis))
}

// createLimit is the limit of the gateway's processor time for a POST, in µs.
const createLimit = 180

// processorTime measures the processor time that each route's process uses for one request, and compares the gateway with its peers.
func (b *bench) processorTime(ctx context.Context, d routes) error {
	measured := []route{d.gateway, d.quiet, d.create, d.withReads, d.withoutReads}
	for _, one := range d.peers {
		measured = append(measured, one.route)
	}
	costs := make([]cost, len(measured))
	var sides []func(int) error
	for i, one := range measured {
		sides = append(sides, func(round int) error { return b.charge(ctx, one, round, &costs[i]) })
	}
	if err := runRounds(sides...); err != nil {
		return err
	}
	gateway, quiet, create := costs[0], costs[1], costs[2]
	for i, one := range d.peers {
		other := costs[5+i]
		row := costRow("gateway: key check, shared limit, headers, signed caller, log line; CPU per request", gateway, one.name, other)
		row.Aim = report.Aim{Text: fmt.Sprintf("≤ %.1f ×", one.aim), Value: row.Ratio, AtMost: one.aim}
		b.table.Add(row)
		if one.name == "nginx" { // which writes no log either
			b.table.Add(costRow("gateway without its log lines (`LOG_LEVEL=warn`); CPU per request", quiet, one.name, other))
		}
	}
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("gateway: POST with a body of %d bytes and an Idempotency-Key, whose response is cached; CPU per request", createSize),
		Value:  create.micros(), Ours: create.withRedis(), Aim: report.AtMost(create.micros(), createLimit), Show: "cpu",
	})
	b.table.Add(requestLog(create, costs[3], costs[4]))
	return nil
}

// requestLog compares a POST, which is always in the request log, with what it would use without an entry. An entry is what a gateway
// that records each read uses more than one that records none.
func requestLog(create, with, without cost) report.Row {
	entry := with.micros().Value - without.micros().Value
	row := report.Row{
		Figure: "gateway: POST with its entry in the request log; CPU per request, compared with no entry", Value: create.micros(),
		Ours: create.micros().String(), Baseline: fmt.Sprintf("an entry: %s, from %s and %s (`REQUEST_LOG_READS` 1 and 0)",
			report.Microseconds(entry), with.micros(), without.micros()),
		Ratio: report.Ratio(create.micros().Value, create.micros().Value-entry), Show: "cpu",
	}
	row.Aim = report.Aim{Text: "≤ 1.03 ×", Value: row.Ratio, AtMost: 1.03}
	return row
}

// costRow compares the gateway with another program.
func costRow(figure string, ours cost, name string, other cost) report.Row {
	return report.Row{
		Figure: figure + ", compared with " + name, Value: ours.micros(), Ours: ours.withRedis(), Baseline: name + ": " + other.withRedis(),
		Ratio: report.Ratio(ours.micros().Value, other.micros().Value), Show: "cpu",
	}
}

// charge measures one round of a route and adds it to total.
func (b *bench) charge(ctx context.Context, one route, round int, total *cost) error {
	if _, err := load.Closed(ctx, one.target, connections, warmUp); err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	before, redisBefore, err := b.spent(one)
	if err != nil {
		return err
	}
	done := b.profile(ctx, fmt.Sprintf("%s-%d", one.name, round), one.profiles)
	s, err := load.Closed(ctx, one.target, connections, b.slice())
	if err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	after, redisAfter, err := b.spent(one)
	if err != nil {
		return err
	}
	done()
	spent := cost{used: after - before, redis: redisAfter - redisBefore, requests: s.Requests}
	total.used, total.redis, total.requests = total.used+spent.used, total.redis+spent.redis, total.requests+spent.requests
	b.say("%s: %s of CPU per request at %.0f req/s", one.name, spent.withRedis(), s.Rate())
	return nil
}

// spent returns the processor time of a route and of Redis so far.
func (b *bench) spent(one route) (used, redis time.Duration, err error) {
	pid, err := b.platform.PID("redis")
	if err != nil {
		return 0, 0, err
	}
	used, err = stack.CPU(one.pid)
	if err != nil {
		return 0, 0, err
	}
	redis, err = stack.CPU(pid)
	return used, redis, err
}
