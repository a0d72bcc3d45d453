// Command loadtest compares Holdfast with known programs on this machine: the gateway with nginx, bookings with pgbench
// running their own SQL, and a page of a large list with the same page of a small one. It starts a complete platform
// with its own data and removes it afterwards.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"holdfast.dev/libs/command"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// figures are measured in this order. The first ones need an idle platform and a copy of small databases, and those
// before the last one few tenants.
var figures = []struct {
	name    string // in BENCH_ONLY
	measure func(*figure)
}{
	{"idle", (*figure).idle},
	{"cpu", (*figure).gatewayCPU},
	{"latency", (*figure).latency},
	{"connections", (*figure).connections},
	{"bookings", (*figure).bookings},
	{"refresh", (*figure).refresh},
	{"signin", (*figure).signIns},
	{"size", (*figure).size},
	{"race", (*figure).race},
	{"availability", (*figure).availability},
	{"pricing", (*figure).pricing},
	{"list", (*figure).list},
	{"accept", (*figure).accept},
	{"opens", (*figure).opens},
	{"pdf", (*figure).pdf},
	{"webhooks", (*figure).webhooks},
	{"search", (*figure).search},
	{"intents", (*figure).intents},
	{"paid", (*figure).paid},
	{"console", (*figure).console},
	{"noisy", (*figure).noisy},
	{"tenants", (*figure).tenants},
}

// settings are read from the environment.
type settings struct {
	Seconds int      `env:"BENCH_SECONDS" envDefault:"10"`   // for each figure
	Rows    int      `env:"BENCH_ROWS" envDefault:"1000000"` // of the large lists
	Only    []string `env:"BENCH_ONLY"`                      // names of figures; empty: all
	Profile string   `env:"BENCH_PROFILE"`                   // folder for CPU profiles; empty: none
}

// upstreamCommand is the command that serves the fixed response: `loadtest upstream HOST:PORT`.
const upstreamCommand = "upstream"

// maxSeconds limits the bookings that are created through the API to days before the template's day: with 64 a day,
// there are slots for 17,000 per second.
const maxSeconds = 300

var (
	errFailed = errors.New("failed: the table names them with their errors")
	errResult = errors.New("a measurement has an unexpected result")
)

func main() {
	root := &cobra.Command{Use: "loadtest", Short: "Benchmark Holdfast against nginx and pgbench"}
	root.AddCommand(
		&cobra.Command{
			Use: "bench", Short: "Start a temporary platform, print a table of results, and delete the platform",
			Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				cfg, err := readSettings()
				if err != nil {
					return err
				}
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
				defer stop()
				return run(ctx, cfg, cmd.OutOrStdout())
			},
		},
		&cobra.Command{
			Use: upstreamCommand + " HOST:PORT", Short: "Serve one fixed response until a signal", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return load.Serve(args[0]) },
		},
	)
	if err := command.Execute(context.Background(), root); err != nil {
		command.Fail("loadtest", err)
	}
}

func readSettings() (settings, error) {
	cfg, err := env.ParseAs[settings]()
	if err != nil {
		return cfg, err
	}
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	for _, name := range cfg.Only {
		if !slices.Contains(names, name) {
			return cfg, fmt.Errorf("BENCH_ONLY must be of %s, not %q", strings.Join(names, ", "), name)
		}
	}
	if cfg.Seconds < 1 || cfg.Seconds > maxSeconds || cfg.Rows < smallList {
		return cfg, fmt.Errorf("BENCH_SECONDS must be 1 to %d, BENCH_ROWS at least %d", maxSeconds, smallList)
	}
	if cfg.Profile == "" {
		return cfg, nil
	}
	cfg.Profile, err = filepath.Abs(cfg.Profile)
	return cfg, errors.Join(err, os.MkdirAll(cfg.Profile, 0o755))
}

// bench is one run.
type bench struct {
	settings
	platform  *stack.Platform
	table     *report.Table
	began     time.Time
	load      string               // the machine's load before the run
	databases map[string]*pgx.Conn // by service
	shop      *shop                // nil before its first use, as the next ones
	gateways  *gateways
	people    []*browser
	// booking is the processor time of PostgreSQL for a booking's transaction in pgbench, with which the processor time of
	// other requests is compared; 0: not measured.
	booking time.Duration
}

// figure is a measurement that is running. Like a test, it ends when one of its steps fails.
type figure struct {
	*bench
	ctx  context.Context
	name string
	err  error
}

// check ends the figure after an error.
func (f *figure) check(err error) {
	if err != nil {
		f.err = err
		runtime.Goexit()
	}
}

// add adds a row of the figure.
func (f *figure) add(r report.Row) {
	r.Show = f.name
	f.table.Add(r)
}

// say prints one line of progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func run(ctx context.Context, cfg settings, out io.Writer) error {
	b := &bench{
		settings: cfg, table: &report.Table{}, began: time.Now(), load: loadAverage(), databases: map[string]*pgx.Conn{},
	}
	checkout, err := os.Getwd()
	if err != nil {
		return err
	}
	b.say("starting a platform of its own")
	b.platform, err = stack.Start(ctx, checkout)
	defer func() { //nolint:contextcheck // the context may be what ended the run
		b.say("stopping, and removing the data")
		for _, db := range b.databases {
			_ = db.Close(context.Background())
		}
		b.platform.Stop()
	}()
	if err != nil {
		return err
	}
	for _, f := range figures {
		if len(cfg.Only) == 0 || slices.Contains(cfg.Only, f.name) {
			b.try(ctx, f.name, f.measure)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	warnings, err := b.compare(ctx, checkout)
	return errors.Join(b.result(out, warnings), err)
}

// try measures one figure. The table contains a failed figure with its error, and the others are still measured.
func (b *bench) try(ctx context.Context, name string, measure func(*figure)) {
	if ctx.Err() != nil {
		return
	}
	f := &figure{bench: b, ctx: ctx, name: name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		measure(f)
	}()
	<-done
	if f.err != nil && ctx.Err() == nil {
		b.say("%s failed: %v", name, f.err)
		b.table.Fail(name, name, f.err)
	}
}

// result prints the table and the warnings. A missing figure is an error.
func (b *bench) result(out io.Writer, warnings []string) error {
	fmt.Fprintf(out, "\nMeasured %s, %d cores, everything on one machine; %d s per figure; load average before: %s\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), b.Seconds, b.load)
	b.table.Print(out)
	if len(warnings) > 0 {
		fmt.Fprintf(out, "\nWorse than in earlier runs:\n\n- %s\n", strings.Join(warnings, "\n- "))
	}
	if failed := b.table.Failed(); failed > 0 {
		return fmt.Errorf("%d figures %w", failed, errFailed)
	}
	return nil
}

// loadAverage returns the average number of processes that were ready to run in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
