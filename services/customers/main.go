// Command customers serves the customers of every tenant, and migrates its database.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/customers/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:     "customers",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: []*cobra.Command{service.Migrate(migrate), service.Topics(makeTopics)},
	})
}

func migrate(ctx context.Context, s pg.MigrateSettings) error {
	return pg.Migrate(ctx, s.URL, migrations.FS, s.Roles)
}
