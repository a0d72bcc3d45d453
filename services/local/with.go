package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/testservers"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
)

const both = "both"

// testPoolerConns is so low that the clients of a test share the connections to the server.
const testPoolerConns = 2

func withCommand() *cobra.Command {
	var kafka, shared string
	var pooler int
	cmd := &cobra.Command{
		Use:   "with [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command with temporary PostgreSQL, Redis and Kafka servers (TEST_POSTGRES_URL, TEST_POOLER_URL, TEST_REDIS_URL, TEST_KAFKA_BROKERS); TEST_POSTGRES=18 selects PostgreSQL 18",
		Args: func(cmd *cobra.Command, args []string) error {
			if shared != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if shared == "" {
				return with(cmd.Context(), kafka, pooler, func(ctx context.Context, env []string) error { return runInside(ctx, args, env) })
			}
			if err := parts.Installed(cmd.Context()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return exitCode(testservers.Missing)
			}
			return with(cmd.Context(), kafka, pooler, func(ctx context.Context, env []string) error { return share(ctx, shared, env, unusedFor, checkUse) })
		},
	}
	cmd.Flags().StringVar(&shared, "share", "", "instead of a command: share the servers with the test processes of a folder")
	_ = cmd.Flags().MarkHidden("share")
	cmd.Flags().StringVar(&kafka, "kafka", "auto", "broker: auto, apache, embedded, both or none")
	cmd.Flags().IntVar(&pooler, "pooler", 0, "also start PgBouncer in transaction mode, with this number of connections to PostgreSQL for each database and role")
	cmd.Flags().Lookup("pooler").NoOptDefVal = strconv.Itoa(testPoolerConns)
	return cmd
}

// with starts private parts in a temporary folder, calls use with the variables that contain their addresses, and stops the parts.
func with(ctx context.Context, kafka string, pooler int, use func(ctx context.Context, env []string) error) error {
	base, err := scratchBase()
	if err != nil {
		return err
	}
	sweepScratch(base)
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d-", scratchPrefix, os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	screen := newConsole(os.Stderr, "")
	if screen.dir = logFolder(dir); os.Mkdir(screen.dir, 0o700) != nil {
		return fmt.Errorf("making %s: %w", screen.dir, err)
	}
	s := &stack{
		screen: screen, state: state.Memory(), data: filepath.Join(dir, "data"), mark: dir, throwaway: true,
		group: &supervise.Group{Notice: screen.say},
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	defer s.group.Stop()
	env, err := s.startTestParts(ctx, kafka, pooler)
	if err != nil {
		return err
	}
	screen.say("parts are ready")
	return use(ctx, env)
}

// startTestParts starts the parts that tests require, and returns the variables with the addresses.
func (s *stack) startTestParts(ctx context.Context, kafka string, pooler int) ([]string, error) {
	kinds := []string{kafka}
	switch kafka {
	case both:
		kinds = []string{"auto", parts.Embedded}
	case "none":
		kinds = nil
	case "auto", parts.Apache, parts.Embedded:
	default:
		return nil, fmt.Errorf("--kafka must be auto, apache, embedded, both or none, not %q", kafka)
	}
	major := os.Getenv("TEST_POSTGRES")
	if major != "" && major != parts.NewestMajor {
		return nil, fmt.Errorf("TEST_POSTGRES must be %s, or not set for the installed PostgreSQL, not %q", parts.NewestMajor, major)
	}
	if err := s.startParts(ctx, partsConfig{kafka: kinds, newest: major != "", pooler: pooler}); err != nil {
		return nil, err
	}
	env := append(os.Environ(), "TEST_POSTGRES_URL="+s.postgresURL, "TEST_REDIS_URL="+s.redisURL)
	if pooler > 0 {
		through, err := parts.Through(s.postgresURL, s.poolerPort)
		if err != nil {
			return nil, err
		}
		env = append(env, "TEST_POOLER_URL="+through)
	}
	if len(kinds) > 0 {
		env = append(env, "TEST_KAFKA_BROKERS="+s.brokers[0])
	}
	if kafka == both {
		env = append(env, "TEST_KAFKA_BROKERS_EMBEDDED="+s.brokers[1])
	}
	return env, nil
}

// runInside runs a command in our own process group, so that a shell can use the terminal, and forwards signals to it. It returns the
// command's own exit code as an exitCode.
func runInside(ctx context.Context, args, env []string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = supervise.Attached()
	if err := supervise.Start(cmd); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var overdue <-chan time.Time
	for {
		select {
		case sig := <-signals:
			if sig != os.Interrupt || !onTerminal() { // on a terminal, the command receives it directly
				_ = cmd.Process.Signal(sig)
			}
			if sig != os.Interrupt {
				overdue = time.After(10 * time.Second)
			}
		case <-overdue:
			_ = cmd.Process.Kill()
		case err := <-done:
			return exitOf(err)
		}
	}
}

// exitOf returns a command's exit code, or 128 + the signal's number as shells do.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitCode(128 + int(status.Signal()))
	}
	return exitCode(exit.ExitCode())
}

func onTerminal() bool {
	info, err := os.Stdin.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// scratchPrefix is the prefix of the name of a temporary folder. Our process id follows it.
const scratchPrefix = "holdfast-with-"

// scratchBase returns the folder for temporary folders. As root, it is a folder that the servers' user can access, because TMPDIR
// might not be.
func scratchBase() (string, error) {
	if os.Geteuid() != 0 {
		return os.TempDir(), nil
	}
	return parts.RootData, os.MkdirAll(parts.RootData, 0o755)
}

// sweepScratch removes the folders of killed runs.
func sweepScratch(base string) {
	folders, _ := filepath.Glob(filepath.Join(base, scratchPrefix+"*"))
	for _, folder := range folders {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), scratchPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}
