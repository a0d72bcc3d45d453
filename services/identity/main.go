// Command identity owns tenants, API keys, operators, OAuth apps and the audit log. It looks up credentials for the gateway, and
// its command line manages this data.
package main

import (
	"context"
	_ "time/tzdata" // so that time zones can be checked on machines without them

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// name is the name of this service.
const name = "identity"

func main() {
	cfg := defaults()
	service.Main(service.App{
		Name:     "identity",
		Config:   &cfg,
		Serve:    func(ctx context.Context, rt *service.Runtime) error { return wire(ctx, rt, cfg) },
		Commands: append(platform.Commands("identity", migrate), rolesCommand(), keysCommand(), tenantCommand(), keyCommand(), platformKeyCommand(), usageCommand(), operatorCommand(), appCommand(), grantCommand(), auditCommand(), platform.ResealCommand(store.ResealFactors)),
	})
}

func migrate(ctx context.Context, c toolConfig) (err error) {
	if c.MigrateDatabaseURL == "" {
		if c, err = loadTools(); err != nil {
			return err
		}
	}
	return pg.Migrate(ctx, c.MigrateDatabaseURL, migrations.FS, pg.Roles{App: c.AppRole, Worker: c.WorkerRole})
}
