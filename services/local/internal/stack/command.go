package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"holdfast.dev/services/local/internal/supervise"
)

// ExitCode is the exit code of a command that ran and failed.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// RunCommand runs a command in our own process group, so that a shell can use the terminal, and forwards signals to it. It returns the
// command's own exit code as an ExitCode.
func RunCommand(ctx context.Context, args, env []string) error {
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
		return ExitCode(128 + int(status.Signal()))
	}
	return ExitCode(exit.ExitCode())
}

func onTerminal() bool {
	info, err := os.Stdin.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
