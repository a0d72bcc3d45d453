package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Redrive makes the usual "redrive" command of a service that consumes as group, by kafkax.Redrive. It takes its
// Settings, those of kafkax, from the environment or the .run/env of a running platform.
func Redrive[Settings any](group string, redrive func(ctx context.Context, cfg Settings, group string, limit, batchBytes int) (int, error)) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "redrive", Short: "Send dead letters back to the topics they came from.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg Settings
			var common Common
			if err := errors.Join(Load(&cfg, EnvFile()), Load(&common)); err != nil {
				return err
			}
			n, err := redrive(cmd.Context(), cfg, group, limit, common.BatchBytes)
			fmt.Fprintln(cmd.OutOrStdout(), n, "sent back")
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "max", 0, "at most so many; 0 is all")
	return cmd
}
