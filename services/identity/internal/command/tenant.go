package command

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func tenantCommand() *cobra.Command {
	return group("tenant", "Manage tenants.", tenantCreate(), tenantUpdate(), tenantLimits(),
		command(spec{
			use: "show TENANT", short: "Show a tenant; --json shows all settings.",
			run: func(_ context.Context, t tool) error { return tenants.one(t)(t.tenant, nil) },
		}),
		command(spec{
			use: "list", short: "List all tenants.",
			run: func(ctx context.Context, t tool) error { return tenants.list(t)(t.Tenants(ctx)) },
		}),
		tenantAction(domain.SuspendTenant, "Suspend a tenant: its credentials and operators are rejected, and its webhooks wait."),
		tenantAction(domain.ResumeTenant, "Resume a suspended tenant."),
		tenantAction(domain.CloseTenant, "Close a tenant: its data can be read until it is erased, 30 days later, and its webhooks wait."),
		tenantAction(domain.ReopenTenant, "Reopen a closing tenant whose erasure has not begun."))
}

var tenants = table[domain.Tenant, view.AdminTenant]{
	view: view.TenantForAdmin, head: []string{"ID", "SLUG", "NAME", "TIMEZONE", "CURRENCY", "STATUS"},
	row: func(_ domain.Tenant, v view.AdminTenant) []string {
		return []string{v.ID, v.Slug, v.Name, v.Timezone, v.Currency, v.Status}
	},
}

func tenantCreate() *cobra.Command {
	var slug string
	var in domain.TenantPatch
	fields := newTenantFields(&in)
	return command(spec{
		use: "create", short: "Create a tenant with the default booking policy.",
		flags: append(fields.flags(), flag{&slug, "slug", "unique short name: lowercase letters, digits and hyphens", optional}),
		run: func(ctx context.Context, t tool) error {
			if _, err := fields.read(t.cmd.Flags()); err != nil {
				return err
			}
			return tenants.one(t)(t.CreateTenant(ctx, t.by, slug, in))
		},
	})
}

func tenantUpdate() *cobra.Command {
	var in domain.TenantPatch
	fields := tenantFields(&in)
	return command(spec{
		use: "update TENANT", short: "Update a tenant's settings and booking policy; null clears a setting, and an empty text clears a text on invoices.",
		flags: fields.flags(),
		run: func(ctx context.Context, t tool) error {
			if _, err := fields.read(t.cmd.Flags()); err != nil {
				return err
			}
			return tenants.changed(t)(t.UpdateTenant(ctx, t.by, t.tenant.ID, in))
		},
	})
}

func tenantAction(action domain.TenantAction, short string) *cobra.Command {
	var reason string
	return command(spec{
		use: string(action) + " TENANT", short: short,
		flags: []flag{{&reason, "reason", "reason in at most 500 characters, which the tenant's operators can read", optional}},
		run: func(ctx context.Context, t tool) error {
			return tenants.changed(t)(t.ActOnTenant(ctx, t.by, t.tenant.ID, action, reason))
		},
	})
}
