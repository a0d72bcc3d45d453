// Package command is the command line of every process: help, usage and version are the same everywhere.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker, as in the Makefile.
var version, commit string

// Version says which build this is: its version, its commit, and the Go that made it. Without the linker's word the
// commit is the one that `go build` has stamped.
func Version() string {
	v, c := version, commit
	if v == "" {
		v = "dev"
	}
	info, ok := debug.ReadBuildInfo()
	for i := 0; ok && c == "" && i < len(info.Settings); i++ {
		if info.Settings[i].Key == "vcs.revision" {
			c = info.Settings[i].Value
		}
	}
	if c == "" {
		c = "unknown"
	}
	return fmt.Sprintf("%s (commit %s, %s)", v, c, runtime.Version())
}

// UsageError is a command line that names no command's work: the error, and how the command that it reached is used.
type UsageError struct {
	Err   error
	Usage string
}

// Error is one line, without the usage.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the parser's error.
func (e *UsageError) Unwrap() error { return e.Err }

// Execute runs the command that the arguments name. Without one a command that only has commands below it prints its
// help; `--version` prints Version; whatever fails before the command's own work begins is a UsageError.
func Execute(ctx context.Context, root *cobra.Command) error {
	root.Version = Version()
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	began := false
	prepare(root, &began)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !began {
		return &UsageError{Err: err, Usage: cmd.UsageString()}
	}
	return err //nolint:wrapcheck // the command's own words
}

// prepare makes each command note when its work begins, and each group of commands refuse a name that it lacks.
func prepare(cmd *cobra.Command, began *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return run(cmd, args)
		}
	} else if cmd.HasSubCommands() && cmd.HasParent() { // cobra looks after the root itself
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub, began)
	}
}

// Fail prints an error of Execute as every process does, and exits with 1.
func Fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(os.Stderr, "\n%s", usage.Usage)
	}
	os.Exit(1)
}
