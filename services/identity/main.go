// Command identity owns tenants, API keys, operators, OAuth apps and the audit log. It looks up credentials for the gateway, and
// its command line manages this data.
package main

import (
	"context"
	_ "time/tzdata" // so that time zones can be checked on machines without them

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/identity/internal/command"
	"holdfast.dev/services/identity/internal/store"
)

// name is the name of this service.
const name = "identity"

func main() {
	cfg := defaults()
	service.Main(service.App{
		Name:     name,
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(append(platform.Commands(name, command.Migrate), command.All()...), platform.ResealCommand(store.ResealFactors)),
	})
}
