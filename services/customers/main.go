// Command customers serves the customers of all tenants, migrates its database, and repairs it after a restore.
package main

import (
	"context"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:   "customers",
		Config: &cfg,
		Serve:  func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(platform.Commands("customers", platform.Migrate(migrations.FS)), platform.RepairCommand(app.Repair()),
			service.Command("ledger", "Record payments and manual refunds that the ledger of payments has lost, and list what differs; safe to repeat.", recordLedger)),
	})
}
