package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"
)

const defaultWait = time.Minute

// ownerSettings are the settings of the commands that change the numbers of partitions.
type ownerSettings struct {
	URL string `env:"MIGRATE_DATABASE_URL,required,notEmpty"` // URL of the database in the role <db>_owner
}

func (s ownerSettings) open(ctx context.Context) (*pg.DB, error) {
	return pg.Open(ctx, s.URL, pg.Options{MaxConns: 1, Background: true})
}

// topicsCommand creates topics, and increases the partitions of those that the service writes, and of those that it reads whose writer
// has no database.
func topicsCommand(s proto.Service, missing error) *cobra.Command {
	var increase bool
	wait := defaultWait
	cmd := &cobra.Command{
		Use: "topics", Short: "Create missing topics; safe to repeat.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg kafkax.Settings
			if err := errors.Join(missing, service.Load(&cfg)); err != nil {
				return err
			}
			err := kafkax.MakeTopics(cmd.Context(), cfg, topics(s, cfg.Partitions))
			if err == nil {
				err = claimAsOwner(cmd.Context(), s, cfg)
			}
			if err != nil || !increase {
				return err
			}
			return increaseTopics(cmd.Context(), s, cfg, wait)
		},
	}
	cmd.Flags().BoolVar(&increase, "increase", false, "also increase the partitions of the service's own topics, and of requests with logs, to KAFKA_PARTITIONS, in the order of each key")
	cmd.Flags().DurationVar(&wait, "wait", defaultWait, "with --increase: how long the relays wait for the consumers to handle all messages")
	return cmd
}

// claimAsOwner checks that the topics belong to the service's database, if the owner's URL is set.
func claimAsOwner(ctx context.Context, s proto.Service, cfg kafkax.Settings) error {
	var owner struct {
		URL string `env:"MIGRATE_DATABASE_URL" secret:"url"`
	}
	if err := service.Load(&owner); err != nil || owner.URL == "" {
		return err
	}
	cluster, err := cfg.Cluster()
	if err != nil {
		return err
	}
	db, err := ownerSettings{URL: owner.URL}.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return claimTopics(ctx, db, cluster, s.Name)
}

// increaseTopics increases the topics that the service writes. Before, it increases those that the service reads and that have no
// outbox: they have no order to keep, and their writer has no commands for topics.
func increaseTopics(ctx context.Context, s proto.Service, cfg kafkax.Settings, wait time.Duration) error {
	cluster, err := cfg.Cluster()
	if err != nil {
		return err
	}
	for _, topic := range withoutOutbox(s) {
		if err := kafkax.AddPartitions(ctx, cluster, topic, cfg.Partitions); err != nil {
			return err
		}
	}
	if len(s.Topics) == 0 {
		return nil
	}
	var owner ownerSettings
	if err := service.Load(&owner); err != nil {
		return err
	}
	db, err := owner.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, topic := range s.Topics {
		i := outbox.Increase{
			DB: db, Cluster: cluster, Topic: topic, Groups: readers(topic), Partitions: cfg.Partitions, Wait: wait, Log: slog.Default(),
		}
		if err := i.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// withoutOutbox returns the topics that a service reads and whose writer has no database, and therefore no outbox.
func withoutOutbox(s proto.Service) (found []string) {
	for _, writer := range proto.Services() {
		for _, topic := range writer.Topics {
			if !writer.Database && slices.Contains(s.Reads, topic) {
				found = append(found, topic)
			}
		}
	}
	return found
}

// readers returns the consumer groups of a topic.
func readers(topic string) (groups []string) {
	for _, s := range proto.Services() {
		if slices.Contains(s.Reads, topic) {
			groups = append(groups, s.Name)
		}
	}
	return groups
}

// outboxCommand sets the number of partitions of the relays.
func outboxCommand() *cobra.Command {
	var partitions int
	cmd := &cobra.Command{
		Use: "outbox", Short: "Set the number of partitions of the outbox, which relays send in parallel.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var owner ownerSettings
			if err := service.Load(&owner); err != nil {
				return err
			}
			db, err := owner.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			if err := outbox.SetRelays(cmd.Context(), db, partitions); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), partitions, "partitions")
			return nil
		},
	}
	cmd.Flags().IntVar(&partitions, "partitions", 0, "number of partitions: a multiple of 8, at most 1024")
	if err := cmd.MarkFlagRequired("partitions"); err != nil {
		panic(err) // cannot fail: the flag is defined above
	}
	return cmd
}
