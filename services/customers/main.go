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

func migrate(ctx context.Context) error {
	var cfg MigrateConfig
	if err := service.Load(&cfg); err != nil {
		return err
	}
	return pg.Migrate(ctx, cfg.URL, migrations.FS, pg.Roles{App: cfg.AppRole, Worker: cfg.WorkerRole})
}
