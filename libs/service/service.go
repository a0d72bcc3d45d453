// Package service is the frame of every process: commands, settings from the environment, JSON logs, metrics, traces,
// health, background workers with restart, and a graceful stop in reverse order of registration.
//
//	func main() {
//		var cfg Config // fields with `env:"NAME" envDefault:"…" secret:"true"`
//		service.Main(service.App{
//			Name:   "customers",
//			Config: &cfg,
//			Serve:  func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
//			Commands: []*cobra.Command{seedCommand()},
//		})
//	}
//
// wire opens what the process needs and registers it with rt, in order. Nothing runs until wire returns.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"holdfast.dev/libs/command"
	"holdfast.dev/libs/obs"
)

// App describes a process.
type App struct {
	Name string
	// Config points to the process's own settings. They are loaded only for Serve, before it runs. A command loads its own with
	// Load.
	Config any
	// Serve builds the object graph and registers it. When it returns nil, everything starts.
	Serve func(ctx context.Context, rt *Runtime) error
	// Commands are the commands in addition to serve, such as migrate. Their context ends with the first signal.
	Commands []*cobra.Command
}

// Main runs the command that the arguments name, and exits with 1 on an error. Without a command it prints the help.
func Main(app App) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, app, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		command.Fail(app.Name, err)
	}
}

// Run is Main without signals and exit. It returns when ctx has ended and all parts have stopped.
func Run(ctx context.Context, app App, args []string, stdout io.Writer) error {
	root := &cobra.Command{Use: app.Name, Short: "Run " + app.Name + " or one of its commands."}
	root.AddCommand(&cobra.Command{
		Use: "serve", Short: "Start the server; settings come from the environment.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), app, stdout) }, //nolint:contextcheck // parts outlive the command's context, to stop in order
	})
	root.AddCommand(probeCommand()) //nolint:contextcheck // the command receives its context when it runs
	root.AddCommand(app.Commands...)
	root.SetArgs(args)
	root.SetOut(stdout)
	return command.Execute(ctx, root)
}

// Command creates a command that reads its Settings from the environment.
func Command[Settings any](name, short string, run func(ctx context.Context, cfg Settings) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg Settings
			if err := Load(&cfg); err != nil {
				return err
			}
			return run(cmd.Context(), cfg)
		},
	}
}

func serve(ctx context.Context, app App, stdout io.Writer) (err error) {
	common := Common{HTTP: standardLimits}
	if err := errors.Join(Load(&common), loadOwn(app.Config)); err != nil {
		return err
	}
	if err := common.check(); err != nil {
		return err
	}
	lines := obs.NewWriter(stdout)
	defer lines.Flush()
	log, err := obs.NewLogger(lines, app.Name, common.LogLevel)
	if err != nil {
		return err
	}
	slog.SetDefault(log) // so that libraries that print through the standard logger write lines of the same form
	limitMemory(log)
	log.Info("start", slog.Any("config", Describe(&common, app.Config)))
	rt := newRuntime(app.Name, log, common)
	if err := rt.trace(ctx); err != nil {
		return err
	}
	rt.Register(newCertificates(&common, app.Config))
	rt.serveMetrics()                                            //nolint:contextcheck // as above
	if err := rt.watchSecrets(&common, app.Config); err != nil { //nolint:contextcheck // as above
		return err
	}
	if err := app.Serve(ctx, rt); err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), rt.stop()) //nolint:contextcheck // as above
	}
	return rt.run(ctx)
}

func loadOwn(config any) error {
	if config == nil {
		return nil
	}
	return Load(config)
}

// limitMemory sets the soft memory limit from the container's limit. Without such a limit it changes nothing. These processes have
// a small heap and create much garbage. Collecting at five times the live heap instead of twice saves a tenth of their CPU for a
// few megabytes.
func limitMemory(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if _, err := memlimit.Set(memlimit.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
		log.Debug("memory limit of the container not detected", slog.Any("error", err))
	}
}

func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
