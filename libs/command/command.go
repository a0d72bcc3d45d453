// Package command provides the command line of every process. Help, usage and version are the same everywhere.
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

// Build identifies the build of an executable.
type Build struct {
	Version string // such as 1.2.0; "dev" if the linker set none
	Commit  string // "unknown" if neither the linker nor go build recorded one
	Go      string // the Go version, such as go1.26.1
}

// Version describes the build: its version, its commit and its Go version.
func Version() string {
	b := CurrentBuild()
	return fmt.Sprintf("%s (commit %s, %s)", b.Version, b.Commit, b.Go)
}

// CurrentBuild returns the build of this executable. When the linker set no commit, the one that `go build` recorded is used.
func CurrentBuild() Build {
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
	return Build{Version: v, Commit: c, Go: runtime.Version()}
}

// UsageError reports an invalid command line: the error, and the usage of the selected command.
type UsageError struct {
	Err   error
	Usage string
}

// Error returns one line, without the usage.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the parser's error.
func (e *UsageError) Unwrap() error { return e.Err }

// Execute runs the command that the arguments name. A command that only has subcommands prints its help, and `--version` prints
// Version. An error that occurs before the command starts is a UsageError.
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
	return err
}

// prepare makes each command record that it started, and makes each group of commands reject an unknown name.
func prepare(cmd *cobra.Command, began *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return run(cmd, args)
		}
	} else if cmd.HasSubCommands() && cmd.HasParent() { // cobra itself checks the root command
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

// Fail prints an error of Execute in the form that all processes share, and exits with 1.
func Fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(os.Stderr, "\n%s", usage.Usage)
	}
	os.Exit(1)
}
