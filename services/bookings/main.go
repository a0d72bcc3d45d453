// Command bookings serves the catalogue and the bookings of all tenants, migrates its database, creates demo data, checks
// references, resends dead letters, and repairs it after a restore.
package main

import (
	"context"
	"errors"
	"log/slog"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:   "bookings",
		Config: &cfg,
		Serve:  func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(platform.Commands("bookings", platform.Migrate(migrations.FS)), seedCommand(), platform.RepairCommand(app.Repair()),
			service.Command("integrity", "Check that bookings and claims refer to existing rows.", checkIntegrity)),
	})
}

var errDangling = errors.New("rows refer to rows that do not exist: restore these from a backup, or correct the references")

func checkIntegrity(ctx context.Context, s pg.MigrateSettings) error {
	found, err := store.FindDangling(ctx, s.URL)
	for _, d := range found {
		slog.ErrorContext(ctx, "dangling references", slog.String("column", d.Column), slog.Int64("rows", d.Rows), slog.String("example", d.Example))
	}
	if err == nil && len(found) > 0 {
		err = errDangling
	}
	return err
}
