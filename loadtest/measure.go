package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

const (
	rounds      = 3  // how often the sides of a figure alternate, so that other work on the machine affects all of them
	connections = 16 // requests at the same time in the closed model
	warmUp      = time.Second
	restTime    = time.Second // of the idle platform before each slice
	perSecond   = 5000        // rows that are prepared for each second of a measurement, far more than two cores can use
)

// slice is the time of one round of one side, in whole seconds, as pgbench needs it.
func (b *bench) slice() time.Duration {
	return time.Duration((b.Seconds+rounds-1)/rounds) * time.Second
}

// spare returns how many rows are prepared for a figure of b.Seconds, its warm-ups, and requests that are still running
// when its rounds end.
func (b *bench) spare() int { return perSecond * (rounds*int((b.slice()+warmUp).Seconds()) + 2) }

// side is one of the sides of a figure that alternate.
type side struct {
	name   string
	target load.Target
	do     func(ctx context.Context, conn, n int) error // instead of a request to the target
	pace   load.Pace
	// timed reports that only the times of the requests are measured. Otherwise a slice includes everything that follows
	// its requests, and used is the processor time of all of it.
	timed  bool
	used   usage
	detail string // address of the profiles of its own process; empty: none
	load.Sample
	next int // number of the first request that was not sent yet; no request is sent twice
}

// send sends requests of a side that were not sent before.
func (f *figure) send(s *side, d time.Duration) (sample load.Sample) {
	t, pace, first := s.target, s.pace, s.next
	pace.Conns = cmp.Or(pace.Conns, connections)
	var err error
	if s.do != nil {
		sample, err = load.Each(
			f.ctx, pace, d, func(ctx context.Context, conn, n int) error { return s.do(ctx, conn, first+n) },
		)
	} else {
		t.Nth = func(n int) []byte { return s.target.Nth(first + n) }
		sample, err = load.Send(f.ctx, t, pace, d)
	}
	if err != nil {
		f.check(fmt.Errorf("%s: %w", s.name, err))
	}
	s.next += sample.Requests
	return sample
}

// alternate runs rounds of the sides.
func (f *figure) alternate(sides ...*side) {
	var steps []func()
	for _, s := range sides {
		steps = append(steps, func() { f.serve(s) })
	}
	runRounds(steps...)
}

// runRounds calls each of the steps once per round.
func runRounds(steps ...func()) {
	for range rounds {
		for _, step := range steps {
			step()
		}
	}
}

// serve runs one round of a side. Before, the platform may have been stopped for pgbench.
func (f *figure) serve(s *side) {
	f.send(s, warmUp)
	slice := func() {
		done := f.profile(s)
		sample := f.send(s, f.slice())
		done()
		s.Sample = s.Join(sample)
		f.say("%s: %.0f/s, p50 %s, p99 %s", s.name, sample.Rate(), p(sample, 50), p(sample, 99))
	}
	if s.timed {
		slice()
	} else {
		s.used = s.used.plus(f.account(slice))
	}
}

// account calls slice and returns the processor time of everything that it causes. It begins and ends when no event is
// waiting, because some services collect events for up to a second. The time that the idle platform needs during the
// last wait is subtracted.
func (f *figure) account(slice func()) usage {
	f.check(f.platform.Drain(f.ctx))
	resting := f.processors()
	f.pause(restTime)
	before := f.processors()
	slice()
	end := time.Now()
	f.check(f.platform.Drain(f.ctx))
	idle := before.since(resting).times(time.Since(end).Seconds() / restTime.Seconds())
	return f.processors().since(before).since(idle)
}

// addRate adds the rate of a side compared with another rate.
func (f *figure) addRate(figure string, ours *side, than string, rate float64, t report.Target) {
	f.add(report.Row{
		Figure: figure, Value: report.PerSecond(ours.Rate()), Baseline: fmt.Sprintf("%s: %.0f/s", than, rate),
		Ratio: report.Ratio(ours.Rate(), rate), Target: t,
	})
}

// addCPU adds the processor time of all processes per request, compared with that of PostgreSQL for a booking's
// transaction in pgbench.
func (f *figure) addCPU(figure string, s *side, most float64) {
	row := report.Row{
		Figure: figure + ": CPU time of all processes", Value: perRequest(s.used.platform(), s.Requests),
		Target: report.Target{Most: most},
	}
	if f.booking > 0 {
		row.Baseline = "a booking in pgbench: " + report.Milliseconds(f.booking).String()
		row.Ratio = report.Ratio(row.Value.Value, report.Milliseconds(f.booking).Value)
	}
	f.add(row)
	f.noteCPU(s)
}

// noteCPU adds a note with the processor time of each process.
func (f *figure) noteCPU(s *side) {
	f.table.Note("%s, CPU µs of each: %s", s.name, s.used.per(float64(s.Requests)))
}

// p formats a percentile.
func p(s load.Sample, percentile float64) string {
	return report.Milliseconds(s.Percentile(percentile)).String()
}

// profile records CPU profiles of the services, and of the side's own process, during a slice, if BENCH_PROFILE is set.
// The returned function waits for them. Profiles cost a few percent.
func (f *figure) profile(s *side) (done func()) {
	if f.Profile == "" {
		return func() {}
	}
	addrs := map[string]string{"own": s.detail}
	for _, service := range []string{"bookings", "customers", "payments", "gateway"} {
		addrs[service] = f.settingsOf(service)["METRICS_ADDR"]
	}
	var all sync.WaitGroup
	name := strings.NewReplacer("/", "", " ", "-", "{", "", "}", "", "`", "").Replace(s.name)
	for of, addr := range addrs {
		all.Go(func() {
			text, err := get(f.ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, int(f.slice().Seconds())))
			if err == nil {
				err = os.WriteFile(filepath.Join(f.Profile, fmt.Sprintf("%s-%d-%s.pprof", name, s.next, of)), text, 0o600)
			}
			if err != nil && addr != "" {
				f.say("no profile of %s: %v", of, err)
			}
		})
	}
	return all.Wait
}

// get returns the response from an address.
func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.ReadAll(res.Body)
}

// pause waits, unless the run ends first.
func (f *figure) pause(d time.Duration) {
	select {
	case <-f.ctx.Done():
		f.check(f.ctx.Err())
	case <-time.After(d):
	}
}
