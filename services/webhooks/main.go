// Command webhooks keeps the event log, delivers events to the endpoints of every tenant, and migrates its
// database. Its other commands are for those who receive: listen, trigger and verify.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/webhooks/internal/consume"
	"holdfast.dev/services/webhooks/migrations"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:   "webhooks",
		Config: &cfg,
		Serve:  func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: []*cobra.Command{
			service.Migrate(migrate), service.Topics(makeTopics), service.Redrive(consume.Group, kafkax.Redrive), listenCommand(), triggerCommand(), verifyCommand(),
		},
	})
}

func migrate(ctx context.Context, s pg.MigrateSettings) error {
	return pg.Migrate(ctx, s.URL, migrations.FS, s.Roles)
}
