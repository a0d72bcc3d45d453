// Command customers serves the customers of all tenants and migrates its database.
package main

import (
	"context"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/customers/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:     "customers",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: platform.Commands("customers", platform.Migrate(migrations.FS)),
	})
}
