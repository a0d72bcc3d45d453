package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// rates of the open model, in requests per second.
var rates = []int{250, 500, 1000}

// The limits of the time that the gateway adds at the highest rate.
const (
	medianAim = 250 * time.Microsecond
	tailAim   = time.Millisecond
)

// latency measures how much time the gateway and its peers add to the direct call, at each rate.
func (b *bench) latency(ctx context.Context, d routes) error {
	measured := []route{d.direct, d.gateway}
	for _, one := range d.peers {
		measured = append(measured, one.route)
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
		for _, p := range []struct {
			percentile float64
			aim        time.Duration
		}{{50, medianAim}, {99, tailAim}} {
			if rate < rates[len(rates)-1] {
				p.aim = 0
			}
			b.addLatency(fmt.Sprintf("gateway: p%.0f added at %d req/s", p.percentile, rate), measured, samples, p.percentile, p.aim)
		}
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

// addLatency compares one percentile of the gateway with that of each peer. samples begins with those of the direct call and the
// gateway. The ratios use the total times, because the time that nginx adds is too small for a divisor.
func (b *bench) addLatency(figure string, measured []route, samples []load.Sample, percentile float64, aim time.Duration) {
	direct, ours := samples[0].Percentile(percentile), samples[1].Percentile(percentile)
	text := func(total time.Duration) string {
		return fmt.Sprintf("%s (%s in all)", report.Millis(total-direct), report.Millis(total))
	}
	row := report.Row{
		Figure: figure, Value: report.Milliseconds(ours - direct), Ours: text(ours), Baseline: "direct: " + report.Millis(direct), Show: "latency",
	}
	if aim > 0 {
		row.Aim = report.AtMost(row.Value, report.Milliseconds(aim).Value)
	}
	b.table.Add(row)
	row.Aim = report.Aim{}
	for i, one := range measured[2:] {
		other := samples[2+i].Percentile(percentile)
		row.Figure, row.Baseline = figure+", compared with "+one.name, one.name+": "+text(other)
		row.Ratio = report.Ratio(float64(ours), float64(other))
		b.table.Add(row)
	}
}

// The load of two tenants: one sends 20 times its limit, and the other less than its own, but enough for a 99th percentile that a
// few slow responses do not decide.
const (
	noisyLimit   = 3000 // requests of a tenant in 60 s
	noisyRate    = 20 * noisyLimit / 60
	neighborRate = 200 // requests per second
	noisyGates   = 3
	noisyAim     = 1.5
)

// noisy compares the latency of a tenant's requests alone with their latency next to a tenant that sends 20 times its limit through three
// gateways. Each response to the neighbor must be 200.
func (b *bench) noisy(ctx context.Context) (err error) {
	limits := func(args ...string) error {
		return b.identity(ctx, &struct{}{}, append([]string{"tenant", "limits", "--tenant", "demo", "--json"}, args...)...)
	}
	if err := limits("--requests-per-minute", strconv.Itoa(noisyLimit)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limits("--reset")) }()
	upstream, err := b.startUpstream(ctx)
	if err != nil {
		return err
	}
	var neighbor route
	var all []load.Target
	for n := range noisyGates {
		_, addr, _, err := b.platform.Gateway(ctx, "gateway-noisy-"+strconv.Itoa(n), map[string]string{
			"UPSTREAM_CUSTOMERS_URL": "http://" + upstream,
		})
		if err != nil {
			return err
		}
		noise := b.get(addr)
		noise.Refused = http.StatusTooManyRequests
		all = append(all, noise)
		quiet := load.Request(http.MethodGet, "/api/v1/customers/cu_01m7zbmmn5exnr5ab2hvbd652e", []string{"Authorization: Bearer " + b.platform.Env["OTHER_TEST_KEY"]}, "")
		neighbor = route{name: "neighbor", target: load.Target{Addr: addr, Nth: func(int) []byte { return quiet }, Status: http.StatusOK}}
	}
	var alone, crowded load.Sample
	measure := func(into *load.Sample) error {
		s, err := b.wait(ctx, neighbor, load.Schedule{Rate: neighborRate})
		*into = load.Join(*into, s)
		return err
	}
	if err := runRounds(
		func(int) error { return measure(&alone) },
		func(int) error { return b.while(ctx, all, func() error { return measure(&crowded) }) },
	); err != nil {
		return err
	}
	for _, p := range []float64{50, 99} {
		row := report.Row{
			Figure: fmt.Sprintf("a tenant next to another that sends %d req/s, 20 times its limit, through %d gateways: p%.0f", noisyRate, noisyGates, p),
			Value:  report.Milliseconds(crowded.Percentile(p)), Baseline: "alone: " + report.Millis(alone.Percentile(p)),
			Ratio: report.Ratio(float64(crowded.Percentile(p)), float64(alone.Percentile(p))), Show: "noisy",
		}
		if p == 99 {
			row.Aim = report.Aim{Text: fmt.Sprintf("≤ %.1f ×", noisyAim), Value: row.Ratio, AtMost: noisyAim}
		}
		b.table.Add(row)
	}
	return nil
}

// while runs measure while the noisy tenant sends requests to all gateways.
func (b *bench) while(ctx context.Context, all []load.Target, measure func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var senders errgroup.Group
	for _, one := range all {
		senders.Go(func() error {
			_, err := load.Open(ctx, one, load.Schedule{Rate: noisyRate / len(all)}, b.slice()+warmUp)
			return err
		})
	}
	if err := measure(); err != nil {
		return err
	}
	return senders.Wait()
}
