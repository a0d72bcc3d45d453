package main

import (
	"context"
	"fmt"
	"time"

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

// latency measures how much time nginx, the gateway, and its peers add to the direct call, at each rate.
func (b *bench) latency(ctx context.Context, d routes) error {
	measured := append([]route{d.direct, d.nginx, d.gateway}, d.peers()...)
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
			b.addLatency(delay{rate: rate, percentile: p.percentile, aim: p.aim, routes: measured, samples: samples})
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

// delay is one percentile at one rate, of the direct call, nginx, the gateway, and its peers.
type delay struct {
	rate       int
	percentile float64
	aim        time.Duration
	routes     []route
	samples    []load.Sample
}

// of returns the percentile of a route, in total and more than the direct call.
func (d delay) of(i int) (total, added time.Duration) {
	total = d.samples[i].Percentile(d.percentile)
	return total, total - d.samples[0].Percentile(d.percentile)
}

func (d delay) text(i int) string {
	total, added := d.of(i)
	return fmt.Sprintf("%s (%s in all)", report.Millis(added), report.Millis(total))
}

// addLatency compares one percentile of the gateway with those of the other programs. The aim is for the highest rate. The ratios use
// the total times, because the time that nginx adds is too small for a divisor.
func (b *bench) addLatency(d delay) {
	const nginx, gateway, firstPeer = 1, 2, 3
	figure := fmt.Sprintf("gateway: p%.0f added at %d req/s", d.percentile, d.rate)
	ours, added := d.of(gateway)
	direct, _ := d.of(0)
	row := func(i int) report.Row {
		other, _ := d.of(i)
		return report.Row{
			Figure: figure, Value: report.Milliseconds(added), Ours: d.text(gateway),
			Baseline: fmt.Sprintf("%s: %s; direct: %s", d.routes[i].name, d.text(i), report.Millis(direct)),
			Ratio:    report.Ratio(float64(ours), float64(other)), Show: "latency",
		}
	}
	first := row(nginx)
	if d.rate == rates[len(rates)-1] {
		first.Aim = report.AtMost(report.Milliseconds(added), report.Milliseconds(d.aim).Value)
	}
	b.table.Add(first)
	for i := firstPeer; i < len(d.routes); i++ {
		peer := row(i)
		peer.Figure += ", compared with " + d.routes[i].name
		b.table.Add(peer)
	}
}
