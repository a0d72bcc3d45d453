package service

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// Redrive makes the usual "redrive" command of a service that consumes as group, by kafkax.Redrive. It takes its
// settings from the environment or the .run/env of a running platform.
func Redrive(group string, redrive func(ctx context.Context, brokers []string, prefix, group string, limit int) (int, error)) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "redrive", Short: "Send dead letters back to the topics they came from.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg struct {
				KafkaBrokers []string `env:"KAFKA_BROKERS,required,notEmpty"`
				KafkaPrefix  string   `env:"KAFKA_TOPIC_PREFIX" envDefault:"holdfast."`
			}
			if err := Load(&cfg, EnvFile()); err != nil {
				return err
			}
			n, err := redrive(cmd.Context(), cfg.KafkaBrokers, cfg.KafkaPrefix, group, limit)
			fmt.Fprintln(cmd.OutOrStdout(), n, "sent back")
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "max", 0, "at most so many; 0 is all")
	return cmd
}
