// Identity owns tenants, API keys and the audit log; it tells the gateway what a credential stands for, and
// its command line is how tenants and keys are managed.
package main

import (
	"context"
	_ "time/tzdata" // time zones are checked on machines that have none installed

	"github.com/spf13/cobra"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/service"
	"holdfast.dev/services/identity/internal/consume"
)

func main() {
	var cfg config
	service.Main(service.App{
		Name:   "identity",
		Config: &cfg,
		Serve:  func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: []*cobra.Command{
			service.Migrate(migrate), service.Topics(makeTopics), service.Redrive(consume.Group, kafkax.Redrive), tenantCommand(), keyCommand(), auditCommand(),
		},
	})
}
