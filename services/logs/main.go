// Command logs stores the log of the requests that the gateway received, serves it to developers, and migrates its database.
package main

import (
	"context"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/logs/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:     "logs",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: platform.Commands("logs", platform.Migrate(migrations.FS)),
	})
}
