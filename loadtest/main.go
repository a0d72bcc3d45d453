// Command loadtest compares Holdfast with known programs on this machine: the gateway with nginx, the services with pgbench
// running their own SQL, and a page of a large list with the same page of a small one. It starts a complete platform with its own
// data and removes it afterwards.
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
	"github.com/spf13/cobra"

	"holdfast.dev/libs/command"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// settings are read from the environment.
type settings struct {
	Seconds int      `env:"BENCH_SECONDS" envDefault:"10"`   // for each figure
	Rows    int      `env:"BENCH_ROWS" envDefault:"1000000"` // of the large list
	Only    []string `env:"BENCH_ONLY"`                      // names of figures; empty: all
	Profile string   `env:"BENCH_PROFILE"`                   // folder for CPU profiles; empty: none
}

// upstreamCommand is the command that serves the fixed response: `loadtest upstream HOST:PORT`.
const upstreamCommand = "upstream"

var figures = []string{
	"idle", "cpu", "latency", "connections", "bookings", "cores", "size", "list", "search", "availability", "pricing", "race", "joins", "pooler", "webhooks", "claims",
	"accept", "opens", "taxes", "pdf", "leads", "quotes", "invoices", "intents", "paid", "reconciler", "refresh", "token", "flow", "signin", "console", "tenants", "noisy",
}

// maxSeconds limits the bookings that are created through the API to days before the template's day: with 64 a day, there are
// slots for 17,000 per second.
const maxSeconds = 300

var (
	errFailed = errors.New("failed: the table names them with their errors")
	errResult = errors.New("a measurement has an unexpected result")
)

func main() {
	root := &cobra.Command{Use: "loadtest", Short: "Benchmark Holdfast against nginx and pgbench"}
	root.AddCommand(
		&cobra.Command{
			Use: "bench", Short: "Start a temporary platform, print a table of results, and delete the platform", Args: cobra.NoArgs,
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
	for _, name := range cfg.Only {
		if !slices.Contains(figures, name) {
			return cfg, fmt.Errorf("BENCH_ONLY must be of %s, not %q", strings.Join(figures, ", "), name)
		}
	}
	if cfg.Seconds < 1 || cfg.Seconds > maxSeconds || cfg.Rows < smallList {
		return cfg, fmt.Errorf("BENCH_SECONDS must be 1 to %d, BENCH_ROWS at least %d", maxSeconds, smallList)
	}
	return cfg, nil
}

// bench is one run.
type bench struct {
	settings
	platform *stack.Platform
	table    *report.Table
	began    time.Time
	load     string // the machine's load before the run
}

func (b *bench) wants(figure string) bool { return len(b.Only) == 0 || slices.Contains(b.Only, figure) }

// rounds is how often the compared programs alternate, so that other work on the machine affects both sides.
const rounds = 3

// slice is the time of one round of one program, in whole seconds, as pgbench needs it.
func (b *bench) slice() time.Duration {
	return time.Duration((b.Seconds+rounds-1)/rounds) * time.Second
}

// runRounds runs each of the sides once per round.
func runRounds(sides ...func(round int) error) error {
	for round := range rounds {
		for _, side := range sides {
			if err := side(round); err != nil {
				return err
			}
		}
	}
	return nil
}

// say prints one line of progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func run(ctx context.Context, cfg settings, out io.Writer) error {
	b := &bench{settings: cfg, table: &report.Table{}, began: time.Now(), load: loadAverage()}
	checkout, err := os.Getwd()
	if err != nil {
		return err
	}
	if cfg.Profile != "" {
		if b.Profile, err = filepath.Abs(cfg.Profile); err != nil {
			return err
		}
		if err := os.MkdirAll(b.Profile, 0o755); err != nil {
			return err
		}
	}
	b.say("starting a platform of its own")
	b.platform, err = stack.Start(ctx, checkout, b.say)
	defer func() { //nolint:contextcheck // the context may be what ended the run
		b.say("stopping, and removing the data")
		b.platform.Stop()
	}()
	if err != nil {
		return err
	}
	b.measure(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	warnings, err := b.compare(ctx, checkout)
	return errors.Join(b.result(out, warnings), err)
}

// result prints the table and the warnings. A missing figure is an error.
func (b *bench) result(out io.Writer, warnings []string) error {
	b.print(out)
	if len(warnings) > 0 {
		fmt.Fprint(out, "\nWorse than in earlier runs:\n\n")
	}
	for _, one := range warnings {
		fmt.Fprintln(out, "- "+one)
	}
	if failed := b.table.Failed(); failed > 0 {
		return fmt.Errorf("%d figures %w", failed, errFailed)
	}
	return nil
}

// try measures one figure, or several that depend on each other. The table contains a failed figure with its error, and the others
// are still measured. show is its BENCH_ONLY.
func (b *bench) try(ctx context.Context, show, figure string, measure func() error) {
	if ctx.Err() != nil {
		return
	}
	if err := measure(); err != nil && ctx.Err() == nil {
		b.say("%s failed: %v", figure, err)
		b.table.Fail(figure, show, err)
	}
}

func (b *bench) measure(ctx context.Context) {
	for _, group := range []struct {
		figure  string
		show    []string
		measure func(context.Context) error
	}{
		{"idle platform", []string{"idle"}, b.idle},
		{"gateway compared with nginx", []string{"cpu", "latency", "connections"}, b.gateway},
		// These copy the databases for pgbench, so they run before the large tables are filled.
		{"OAuth", []string{"refresh", "token", "flow", "signin"}, b.oauth},
		{"bookings", []string{"bookings", "cores", "size", "list", "availability", "pricing", "race", "joins", "pooler"}, b.bookings},
		{"leads, quotes and invoices", chainFigures, b.sales},
		{"webhooks", []string{"webhooks"}, b.webhooks},
		{"claims of deliveries", []string{"claims"}, b.claims},
		{"search", []string{"search"}, b.search},
		{"payments", []string{"intents", "paid"}, b.payments},
		{"console", []string{"console"}, b.console},
		{"reconciler of payments", []string{"reconciler"}, b.reconciler},
		{"noisy tenant", []string{"noisy"}, b.noisy},
		{"many tenants", []string{"tenants"}, b.tenants}, // all other figures have few tenants
	} {
		if requested := slices.DeleteFunc(slices.Clone(group.show), func(show string) bool { return !b.wants(show) }); len(requested) > 0 {
			b.try(ctx, strings.Join(requested, ","), group.figure, func() error { return group.measure(ctx) })
		}
	}
}

func (b *bench) print(out io.Writer) {
	now := time.Now().UTC().Format(time.DateOnly)
	fmt.Fprintf(out, "\nMeasured %s, %d cores, everything on one machine; %d s per figure; load average before: %s\n\n",
		now, runtime.NumCPU(), b.Seconds, b.load)
	b.table.Print(out)
	fmt.Fprint(out, "\nBudgets:\n\n")
	b.table.Budgets(out)
	b.say("done")
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
