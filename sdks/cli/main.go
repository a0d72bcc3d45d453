// Command holdfast is the command line of the Holdfast booking platform.
package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	_ "time/tzdata" // the zones of tenants, where the system has none

	"holdfast.dev/sdks/cli/internal/command"
	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
)

// commit is set by the linker, as in the Makefile.
var commit string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process
	app := &command.App{
		In: os.Stdin, Out: output.NewStream(os.Stdout), Err: output.NewStream(os.Stderr),
		Version: operations.Version + " (commit " + cmp.Or(commit, "unknown") + ", " + runtime.Version() + ")",
	}
	os.Exit(app.Run(ctx, os.Args[1:]))
}
