// Command payments processes card payments through each operator's payment gateway, migrates its database, and repairs it after
// a restore.
package main

import (
	"context"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:     "payments",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(platform.Commands("payments", platform.Migrate(migrations.FS)), gatewayCommand(), platform.ResealCommand(store.ResealKeys), platform.RepairCommand(app.Repair())),
	})
}
