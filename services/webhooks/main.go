// Command webhooks stores the event log, delivers events to the endpoints of every tenant, and migrates its database.
package main

import (
	"context"
	"log/slog"
	"time"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/repair"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

func main() {
	cfg := defaults()
	service.Main(service.App{
		Name:   "webhooks",
		Config: &cfg,
		Serve:  func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(platform.Commands("webhooks", migrate),
			service.Command("partitions", "Delete past weeks of the event log.", dropPartitions),
			platform.ResealCommand(store.ResealSecrets), platform.RepairCommand(repair.Service{Name: "webhooks", Copies: store.Copies})),
	})
}

func migrate(ctx context.Context, s pg.MigrateSettings) error {
	if err := pg.Migrate(ctx, s.URL, migrations.FS, s.Roles); err != nil {
		return err
	}
	if _, err := store.DropPartitions(ctx, s.URL, time.Now().Add(-domain.Retention), 0); err != nil { // the next run drops them
		slog.WarnContext(ctx, "expired weeks of the delivery log not dropped; the next run tries again", slog.Any("error", err))
	}
	return nil
}

// partitionWait is how long the command waits for readers of a partition, such as a dump, before it drops the partition.
const partitionWait = 10 * time.Minute

func dropPartitions(ctx context.Context, s pg.MigrateSettings) error {
	dropped, err := store.DropPartitions(ctx, s.URL, time.Now().Add(-domain.Retention), partitionWait)
	for _, name := range dropped {
		slog.InfoContext(ctx, "partition dropped", slog.String("partition", name))
	}
	return err
}
