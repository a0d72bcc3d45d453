package command

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"
	"holdfast.dev/sdks/tools"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/profile"
)

// startup is the time within which the platform must respond when the server starts.
const startup = 30 * time.Second

const mcpHelp = `mcp is a server of the Model Context Protocol. An assistant starts it and talks to it over standard input and output.

Without --allow-writes, its tools only read. A credential for live data is used only if you name it: with --live, or with --profile and a profile in live mode.`

func (a *App) mcp() *cobra.Command {
	var live, writes bool
	cmd := &cobra.Command{
		Use: "mcp", GroupID: groupStart, Short: "Give an assistant tools to work with the platform (MCP server).", Long: mcpHelp,
		Example: "  holdfast mcp --profile acme-test --allow-writes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			s, err := a.session(ctx)
			if err != nil {
				return err
			}
			mode := holdfast.ModeTest
			if live || a.profile != "" && s.Profile.Mode == profile.Live {
				mode = holdfast.ModeLive
			}
			starting, cancel := context.WithTimeout(ctx, startup)
			defer cancel()
			server, err := tools.New(starting, tools.Config{
				Client: s.Client, Mode: mode, Writes: writes, ToWrite: "start it with `holdfast mcp --allow-writes`", Remedies: operations.Remedies, Version: operations.Version,
			})
			if wrong := (*tools.ModeError)(nil); errors.As(err, &wrong) {
				return usage(err)
			}
			if err != nil {
				return err
			}
			return server.Run(ctx, &mcp.StdioTransport{})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&live, "live", false, "work with live data; the credential must be for live mode")
	f.BoolVar(&writes, "allow-writes", false, "also offer the tools that change data")
	return cmd
}
