package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
	"holdfast.dev/loadtest/internal/stack"
)

// served counts the responses of the platform so far.
type served struct {
	load.Sample
	name   string
	target load.Target
	next   int // number of the first request that was not sent yet; no request is sent twice
	sent   int // requests, including those of warm-ups
	used   usage
}

// replayed counts the transactions of pgbench so far.
type replayed struct {
	script       string
	url          string                                               // of the platform's database, with the service's own role
	start        func(ctx context.Context, db *pgx.Conn) (int, error) // where :i starts; nil if nothing is written
	rows         int                                                  // how many values of :n were used, about
	transactions float64
	elapsed      time.Duration
	used         time.Duration // of PostgreSQL
}

// Rate returns the transactions per second.
func (r *replayed) Rate() float64 { return report.Ratio(r.transactions, r.elapsed.Seconds()) }

// serve returns one round of the platform.
func (b *bench) serve(ctx context.Context, s *served) func(round int) error {
	return b.serveWith(ctx, s, connections)
}

// serveWith is serve with another number of connections. Before each round, the platform may have been stopped for pgbench.
func (b *bench) serveWith(ctx context.Context, s *served, conns int) func(round int) error {
	return func(round int) error {
		if _, err := s.send(ctx, conns, warmUp); err != nil {
			return err
		}
		return b.account(ctx, &s.used, func() error {
			done, err := b.profileServices(ctx, fmt.Sprintf("%s-%d", s.name, round))
			if err != nil {
				return err
			}
			sample, err := s.send(ctx, conns, b.slice())
			if err != nil {
				return err
			}
			done()
			b.say("%s: %.0f/s, p50 %s, p99 %s", s.name, sample.Rate(), report.Millis(sample.Percentile(50)), report.Millis(sample.Percentile(99)))
			s.Sample = load.Join(s.Sample, sample)
			return nil
		})
	}
}

// send sends requests that were not sent before.
func (s *served) send(ctx context.Context, conns int, d time.Duration) (load.Sample, error) {
	t, first := s.target, s.next
	t.Nth = func(n int) []byte { return s.target.Nth(first + n) }
	sample, err := load.Closed(ctx, t, conns, d)
	s.sent += sample.Requests
	s.next += sample.Requests + conns // a failed round has sent more
	return sample, err
}

// alternate runs rounds of the platform, and of pgbench on a copy of the platform's PostgreSQL as it is now.
func (b *bench) alternate(ctx context.Context, serve func(round int) error, all ...*replayed) error {
	if err := b.platform.Drain(ctx); err != nil {
		return err
	}
	b.say("copying the platform's PostgreSQL for pgbench")
	y, err := b.platform.Yardstick(ctx)
	if err != nil {
		return err
	}
	defer y.Stop()
	b.say("copied")
	sides := []func(int) error{serve}
	for _, r := range all {
		sides = append(sides, b.replay(ctx, y, r))
	}
	return runRounds(sides...)
}

// replay returns one round of pgbench on the yardstick, while the platform is stopped.
func (b *bench) replay(ctx context.Context, y *stack.Yardstick, r *replayed) func(round int) error {
	return func(int) error {
		admin, err := b.platform.AdminURL(r.url)
		if err != nil {
			return err
		}
		pgbench, err := sqlbench.Find()
		if err != nil {
			return err
		}
		return y.Alone(ctx, func() error {
			if _, err := r.run(ctx, pgbench, y.URL(r.url), y.URL(admin), warmUp); err != nil {
				return err
			}
			before, err := y.CPU()
			if err != nil {
				return err
			}
			rate, err := r.run(ctx, pgbench, y.URL(r.url), y.URL(admin), b.slice())
			if err != nil {
				return err
			}
			after, err := y.CPU()
			if err != nil {
				return err
			}
			b.say("pgbench, %s: %.0f/s", filepath.Base(r.script), rate)
			r.used += after - before
			r.transactions, r.elapsed = r.transactions+rate*b.slice().Seconds(), r.elapsed+b.slice()
			return nil
		})
	}
}

// run runs the script for d and returns the transactions per second.
func (r *replayed) run(ctx context.Context, pgbench, url, admin string, d time.Duration) (float64, error) {
	base := 0
	if r.start != nil {
		db, err := pgx.Connect(ctx, admin)
		if err != nil {
			return 0, err
		}
		base, err = r.start(ctx, db)
		if err = errors.Join(err, db.Close(ctx)); err != nil {
			return 0, err
		}
	}
	rate, err := sqlbench.Run(ctx, pgbench, url, r.script, d, base)
	r.rows += int(rate*d.Seconds()) + sqlbench.Clients
	return rate, err
}

// noteCosts adds a note with the processor time of each process.
func (b *bench) noteCosts(s *served, all ...*replayed) {
	b.table.Note("%s, CPU µs per request: %s", s.name, s.used.per(float64(s.Requests)))
	for _, r := range all {
		b.table.Note("%s in pgbench, CPU µs of PostgreSQL per transaction: %.0f", filepath.Base(r.script), report.Ratio(float64(r.used.Microseconds()), r.transactions))
	}
}

// profileServices profiles the services that the figures measure.
func (b *bench) profileServices(ctx context.Context, name string) (done func(), err error) {
	file := strings.NewReplacer("/", "", " ", "-", "{", "", "}", "").Replace(name)
	var waits []func()
	for _, service := range []string{"bookings", "customers", "payments", "gateway"} {
		settings, err := b.platform.Settings(service)
		if err != nil {
			return nil, err
		}
		waits = append(waits, b.profile(ctx, file+"-"+service, settings["METRICS_ADDR"]))
	}
	return func() {
		for _, wait := range waits {
			wait()
		}
	}, nil
}

// redisCalls returns how many scripts Redis ran.
func redisCalls(ctx context.Context, url string) (int, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return 0, err
	}
	c := redis.NewClient(opt)
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		var calls int
		if n, _ := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &calls); n == 1 {
			return calls, nil
		}
	}
	return 0, nil
}

// scanMetric reads the sum and the count of a histogram in Prometheus' text format.
func scanMetric(text io.Reader, name string) (sum, count float64, err error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), name+"_sum %g", &sum)
		_, _ = fmt.Sscanf(lines.Text(), name+"_count %g", &count)
	}
	return sum, count, lines.Err()
}

// profile records a CPU profile of a process while a figure is measured, if BENCH_PROFILE is set. The returned function waits for
// it. Errors are printed but do not stop the run. The profile costs a few percent.
func (b *bench) profile(ctx context.Context, name, addr string) (done func()) {
	if b.Profile == "" || addr == "" {
		return func() {}
	}
	file := filepath.Join(b.Profile, strings.ReplaceAll(name, " ", "-")+".pprof")
	finished := make(chan error, 1)
	go func() {
		finished <- fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, int(b.slice().Seconds())), file)
	}()
	return func() {
		if err := <-finished; err != nil {
			b.say("no profile of %s: %v", name, err)
			return
		}
		b.say("profile: go tool pprof -top %s", file)
	}
}

func fetch(ctx context.Context, url, file string) error {
	text, err := get(ctx, url)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// get returns the response from an address.
func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
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

// perSecond is how many rows are prepared for each second of a measurement, far more than two cores can use.
const perSecond = 5000

// spare returns how many rows are prepared for a figure of b.Seconds, its warm-ups, and requests that are still running when its
// rounds end.
func (b *bench) spare() int { return perSecond * (rounds*int((b.slice()+warmUp).Seconds()) + 2) }

// enough fails if more rows were used than were prepared, because the requests without a row do no work.
func (b *bench) enough(name string, used int) error {
	if used > b.spare() {
		return fmt.Errorf("%s: %d rows were used of %d: raise perSecond", name, used, b.spare())
	}
	return nil
}
