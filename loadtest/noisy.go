package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// The load of two tenants with the same limit: one sends 20 times the limit, the other less than it.
const (
	noisyLimit   = 3000 // requests of a tenant in 60 s
	noisyRate    = 20 * noisyLimit / 60
	neighborRate = 30 // requests per second
	noisyGates   = 3
	noisyAim     = 1.5
)

// noisy compares the latency of a tenant's requests alone with their latency beside a tenant that sends 20 times its limit through three
// gateways. Each response to the neighbor must be 200.
func (b *bench) noisy(ctx context.Context) error {
	upstream, err := b.startUpstream(ctx)
	if err != nil {
		return err
	}
	var neighbor route
	var all []load.Target
	for n := range noisyGates {
		_, addr, _, err := b.platform.Gateway(ctx, "gateway-noisy-"+strconv.Itoa(n), map[string]string{
			"UPSTREAM_CUSTOMERS_URL": "http://" + upstream, "TENANT_RATE_LIMIT_PER_MINUTE": strconv.Itoa(noisyLimit),
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
	var alone, beside load.Sample
	measure := func(into *load.Sample) error {
		s, err := b.wait(ctx, neighbor, load.Schedule{Rate: neighborRate})
		*into = load.Join(*into, s)
		return err
	}
	if err := runRounds(
		func(int) error { return measure(&alone) },
		func(int) error { return b.beside(ctx, all, func() error { return measure(&beside) }) },
	); err != nil {
		return err
	}
	for _, p := range []float64{50, 99} {
		row := report.Row{
			Figure: fmt.Sprintf("a tenant beside another that sends %d req/s, 20 times its limit, through %d gateways: p%.0f", noisyRate, noisyGates, p),
			Value:  report.Milliseconds(beside.Percentile(p)), Baseline: "alone: " + report.Millis(alone.Percentile(p)),
			Ratio: report.Ratio(float64(beside.Percentile(p)), float64(alone.Percentile(p))), Show: "noisy",
		}
		if p == 99 {
			row.Aim = report.Aim{Text: fmt.Sprintf("≤ %.1f ×", noisyAim), Value: row.Ratio, AtMost: noisyAim}
		}
		b.table.Add(row)
	}
	return nil
}

// beside runs measure while the noisy tenant sends requests to all gateways.
func (b *bench) beside(ctx context.Context, all []load.Target, measure func() error) error {
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
