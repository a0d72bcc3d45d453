package platform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"
)

// Commands returns the commands, in addition to serve, of every service with a database and Kafka: migrate and topics, outbox for
// a service that writes topics, and redrive for a service that reads topics. Each command reads its settings from the environment. Settings are the settings of migrate.
func Commands[Settings any](name string, migrate func(ctx context.Context, cfg Settings) error) []*cobra.Command {
	s, missing := entry(name)
	commands := []*cobra.Command{
		service.Command("migrate", "Migrate the database to the schema of this version; safe to repeat.", migrate),
		topicsCommand(s, missing),
	}
	if s.Database && len(s.Topics) > 0 {
		commands = append(commands, outboxCommand())
	}
	if len(s.Reads) > 0 {
		commands = append(commands, redrive(s.Name))
	}
	return commands
}

// Migrate returns the default implementation of migrate: it creates the tables that every service has, then those of files.
func Migrate(files fs.FS) func(ctx context.Context, cfg pg.MigrateSettings) error {
	return func(ctx context.Context, cfg pg.MigrateSettings) error {
		return pg.Migrate(ctx, cfg.URL, files, cfg.Roles)
	}
}

// redrive reads its settings from the environment or from the .run/env of a running platform.
func redrive(group string) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "redrive", Short: "Send dead letters back to their original topics.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg kafkax.Settings
			var common service.Common
			if err := errors.Join(service.Load(&cfg, service.EnvFile()), service.Load(&common)); err != nil {
				return err
			}
			n, err := kafkax.Redrive(cmd.Context(), cfg, group, limit, common.BatchBytes)
			fmt.Fprintln(cmd.OutOrStdout(), n, "sent back")
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "max", 0, "maximum number of messages; 0 is all")
	return cmd
}
