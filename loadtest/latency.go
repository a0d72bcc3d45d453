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
