package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/testservers"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/stack"
)

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
				return stack.With(cmd.Context(), kafka, pooler, func(ctx context.Context, env []string) error { return stack.RunCommand(ctx, args, env) })
			}
			if err := parts.Installed(cmd.Context()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return stack.ExitCode(testservers.Missing)
			}
			return stack.With(cmd.Context(), kafka, pooler, func(ctx context.Context, env []string) error { return stack.Share(ctx, shared, env) })
		},
	}
	cmd.Flags().StringVar(&shared, "share", "", "instead of a command: share the servers with the test processes of a folder")
	_ = cmd.Flags().MarkHidden("share")
	cmd.Flags().StringVar(&kafka, "kafka", "auto", "broker: auto, apache, embedded, both or none")
	cmd.Flags().IntVar(&pooler, "pooler", 0, "also start PgBouncer in transaction mode, with this number of connections to PostgreSQL for each database and role")
	cmd.Flags().Lookup("pooler").NoOptDefVal = strconv.Itoa(testPoolerConns)
	return cmd
}
