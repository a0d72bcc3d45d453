package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	used   usage
}

// replayed counts the transactions of pgbench so far.
type replayed struct {
	script       string
	start        func(ctx context.Context) (int, error) // where :i starts; nil if nothing is written
	unsent       *pgx.Conn                              // connection to the database in which events of pgbench stay; nil if there is none
	transactions float64
	elapsed      time.Duration
	used         usage
}

// Rate returns the transactions per second.
func (r *replayed) Rate() float64 { return report.Ratio(r.transactions, r.elapsed.Seconds()) }

// serve returns one round of the platform. Requests never repeat: each round continues where the previous one ended.
func (b *bench) serve(ctx context.Context, s *served) func(round int) error {
	return b.serveWith(ctx, s, connections)
}

// serveWith is serve with another number of connections.
func (b *bench) serveWith(ctx context.Context, s *served, conns int) func(round int) error {
	return func(round int) error {
		t := s.target
		t.Nth = func(n int) []byte { return s.target.Nth(s.Requests + conns*round + n) }
		done, err := b.profileServices(ctx, fmt.Sprintf("%s-%d", s.name, round))
		if err != nil {
			return err
		}
		before := b.processors()
		sample, err := load.Closed(ctx, t, conns, b.slice())
		if err != nil {
			return err
		}
		s.used = s.used.plus(b.processors().since(before))
		done()
		b.say("%s: %.0f/s, p50 %s, p99 %s", s.name, sample.Rate(), report.Millis(sample.Percentile(50)), report.Millis(sample.Percentile(99)))
		s.Sample = load.Join(s.Sample, sample)
		return nil
	}
}

// replay returns one round of pgbench.
func (b *bench) replay(ctx context.Context, pgbench, url string, r *replayed) func(round int) error {
	return func(int) error {
		base := 0
		if r.start != nil {
			var err error
			if base, err = r.start(ctx); err != nil {
				return err
			}
		}
		before := b.processors()
		rate, err := sqlbench.Run(ctx, pgbench, url, r.script, b.slice(), base)
		if err != nil {
			return err
		}
		r.used = r.used.plus(b.processors().since(before))
		if err := dropUnsent(ctx, r.unsent); err != nil {
			return err
		}
		b.say("pgbench, %s: %.0f/s", filepath.Base(r.script), rate)
		r.transactions, r.elapsed = r.transactions+rate*b.slice().Seconds(), r.elapsed+b.slice()
		return nil
	}
}

// dropUnsent deletes the events that pgbench left in the outbox. Otherwise the relay of the next slice would have to skip them.
func dropUnsent(ctx context.Context, db *pgx.Conn) error {
	if db == nil {
		return nil
	}
	for _, sql := range []string{"delete from outbox where hash = " + unpublished, "vacuum outbox"} {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("drop events of pgbench: %w", err)
		}
	}
	return nil
}

// noteCosts adds a note with the processor time of each process.
func (b *bench) noteCosts(s *served, r *replayed) {
	b.table.Note("%s, CPU µs per request: %s", s.name, s.used.per(float64(s.Requests)))
	b.table.Note("the same SQL in pgbench, CPU µs per transaction: %s", r.used.per(r.transactions))
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

// usage is the processor time by process.
type usage map[string]time.Duration

func (u usage) plus(more usage) usage {
	sum := maps.Clone(more)
	for name, used := range u {
		sum[name] += used
	}
	return sum
}

func (u usage) since(before usage) usage {
	rest := usage{}
	for name, used := range u {
		rest[name] = used - before[name]
	}
	return rest
}

// per formats the microseconds per request, the largest first, without those that round to zero.
func (u usage) per(requests float64) string {
	names := slices.SortedFunc(maps.Keys(u), func(a, b string) int { return int(u[b] - u[a]) })
	var parts []string
	for _, name := range names {
		if micros := report.Ratio(float64(u[name].Microseconds()), requests); micros >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f", name, micros))
		}
	}
	return strings.Join(parts, ", ")
}

// processors returns the processor time of the platform's processes and of this one so far.
func (b *bench) processors() usage {
	all := usage{}
	files, _ := filepath.Glob(filepath.Join(b.platform.Dir, ".run", "pids", "*"))
	for _, file := range files {
		name := filepath.Base(file)
		pid, err := b.platform.PID(name)
		if err != nil {
			continue // it was just restarted
		}
		measure := stack.CPU // with its children: PostgreSQL's backends
		if name == "local" {
			measure = stack.Own // its children are counted separately
		}
		if used, err := measure(pid); err == nil {
			all[name] = used
		}
	}
	if own, err := stack.Own(os.Getpid()); err == nil {
		all["loadtest"] = own
	}
	return all
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
const perSecond = 3000

// spare returns how many rows are prepared for a figure of b.Seconds, its warm-up, and requests that are still running when its
// rounds end.
func (b *bench) spare() int { return perSecond * (rounds*int(b.slice().Seconds()) + 2) }

// enough fails if more rows were used than were prepared, because the requests without a row do no work.
func (b *bench) enough(s *served, warm int) error {
	if used := s.Requests + warm + (rounds+1)*connections; used > b.spare() {
		return fmt.Errorf("%s: %d rows were used of %d: raise perSecond", s.name, used, b.spare())
	}
	return nil
}
