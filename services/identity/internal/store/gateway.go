package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// PutGateway writes the state of a gateway account in the round trip of the commit, unless the stored state is at least as new. tx
// has the worker role.
func PutGateway(tx pg.Tx, tenant ids.Tenant, live bool, g domain.Gateway) {
	tx.QueueAtCommit(`
		insert into gateway_accounts as g (tenant_id, livemode, id, provider, connected, events, version) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant_id, livemode, id) do update
		set provider = excluded.provider, connected = excluded.connected, events = excluded.events, version = excluded.version
		where g.version < excluded.version`, tenant.UUID(), live, g.ID, g.Provider, g.Connected, g.Events, g.Version)
}

// Shown is a tenant with the payment gateway that is connected in the caller's mode.
type Shown struct {
	domain.Tenant
	GatewayProvider *string // nil: none
	GatewayEvents   *string // ok, missing or late; nil: no gateway
}

// ShownTenant returns the caller's tenant for GET /tenant, or domain.ErrTenantNotFound.
func ShownTenant(ctx context.Context, q pg.Q) (Shown, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[Shown], domain.ErrTenantNotFound, `select `+tenantColumns+`,
		g.provider as gateway_provider, g.events as gateway_events
		from tenants left join lateral (select g.provider, g.events from gateway_accounts g
			where g.tenant_id = @tenant and g.livemode = @live and g.connected order by g.id desc limit 1) g on true
		where tenants.tenant_id = @tenant`, pg.Args{})
}
