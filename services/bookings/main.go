// Command bookings serves the catalogue and the bookings of every tenant, migrates and seeds its database,
// and brings dead letters back.
package main

import (
	"context"
	_ "time/tzdata" // zones of operators, whatever the machine has

	"github.com/spf13/cobra"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/bookings/internal/consume"
	"holdfast.dev/services/bookings/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:     "bookings",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: []*cobra.Command{service.Migrate(migrate), service.Topics(makeTopics), seedCommand(), service.Redrive(consume.Group, kafkax.Redrive)},
	})
}

func migrate(ctx context.Context, s pg.MigrateSettings) error {
	return pg.Migrate(ctx, s.URL, migrations.FS, s.Roles)
}
