// Command bookings serves the catalogue and the bookings of all tenants, migrates its database, creates demo data, and resends dead
// letters.
package main

import (
	"context"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/bookings/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:     "bookings",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(platform.Commands("bookings", platform.Migrate(migrations.FS)), seedCommand()),
	})
}
