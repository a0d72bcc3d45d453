// Package command builds the commands: those of the contract from the table of operations, and those of the tool itself.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// App is the environment of the commands.
type App struct {
	In      io.Reader
	Out     output.Stream
	Err     output.Stream
	Version string // the version, the commit and the Go version, for people

	profile string // --profile
	began   bool   // a command has started, so an error is not one of usage
}

// The groups of commands in the help.
const (
	groupStart     = "start"
	groupResources = "resources"
	groupWebhooks  = "webhooks"
)

// agent is the User-Agent of requests.
const agent = "holdfast-cli/" + operations.Version

// Root returns the command line.
func (a *App) Root() *cobra.Command {
	root := &cobra.Command{
		Use: "holdfast", Short: "Work with the Holdfast booking platform.", Version: a.Version, Long: rootHelp,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-")) // the names of the API work too
	})
	root.PersistentFlags().StringVar(&a.profile, "profile", "", "profile to use (default HOLDFAST_PROFILE, otherwise the current one)")
	_ = root.RegisterFlagCompletionFunc("profile", a.completeProfiles) // the flag exists
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Get started:"},
		&cobra.Group{ID: groupResources, Title: "Resources:"},
		&cobra.Group{ID: groupWebhooks, Title: "Webhooks and logs:"},
	)
	for _, cmd := range []*cobra.Command{a.login(), a.logout(), a.profiles(), a.status(), a.open()} {
		cmd.GroupID = groupStart
		root.AddCommand(cmd)
	}
	for _, res := range operations.Resources {
		root.AddCommand(a.resource(res))
	}
	for _, cmd := range []*cobra.Command{a.listen(), a.trigger(), a.resend(), a.verify(), a.logs()} {
		cmd.GroupID = groupWebhooks
		root.AddCommand(cmd)
	}
	root.AddCommand(man(), a.mcp(), a.export())
	a.prepare(root)
	a.wrapHelp(root)
	return root
}

const rootHelp = `holdfast calls the API of a Holdfast platform: each operation of the API is a command.

Log in first, with "holdfast login". In scripts, set HOLDFAST_BASE_URL and HOLDFAST_API_KEY instead.

Exit codes: 0 success, 1 other errors, 2 invalid command line, 3 request rejected, 4 credential missing, rejected or without the scope, 5 not found, 6 conflict, 7 too many requests, 8 no response or platform unavailable, 9 not confirmed, 130 interrupted.`

// prepare makes each command check its arguments and record that it has started, and makes groups of commands reject unknown names.
func (a *App) prepare(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.Args = arguments(cmd)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.began = true
			return run(cmd, args)
		}
	} else if cmd.HasSubCommands() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		a.prepare(sub)
	}
}

// unknown returns the error for an unknown command, with similar names.
func unknown(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("unknown command %q for %q%s", name, cmd.CommandPath(), suggest(name, names))
}

// Run runs the command line, and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.Root() //nolint:contextcheck // each command gets ctx below
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return exitInterrupted
	}
	if !a.began {
		err = usage(err)
	}
	a.explain(cmd, err)
	return exitCode(err)
}

// session opens a client with the profile of the command line.
func (a *App) session(ctx context.Context) (*profile.Session, error) {
	folder, err := profile.Find()
	if err != nil {
		return nil, err
	}
	s, err := folder.Open(ctx, a.profile, agent)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// interactive reports whether the user can be asked.
func (a *App) interactive() bool {
	f, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && a.Err.Terminal
}

// note writes a line for the user, apart from the result.
func (a *App) note(format string, args ...any) {
	_ = a.Err.Text(fmt.Sprintf(format, args...) + "\n") // a closed terminal does not stop the command
}
