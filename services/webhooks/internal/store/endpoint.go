package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

var endpoints = pg.NewTable("endpoints", "e", domain.ErrEndpointNotFound, func(e *domain.Endpoint) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &e.ID, "created_by", &e.CreatedBy},
		Values: pg.F{
			"url", &e.URL, "event_types", &e.EventTypes, "description", &e.Description, "status", &e.Status, "disabled_reason", &e.DisabledReason,
			"max_in_flight", &e.MaxInFlight, "max_per_second", &e.MaxPerSecond, "holder", &e.Holder, "header_names", pg.Array(&e.HeaderNames),
			"consecutive_failures", &e.ConsecutiveFailures, "failed_waiting", &e.FailedWaiting,
		},
		Read: pg.F{"version", &e.Version, "created_at", &e.CreatedAt, "updated_at", &e.UpdatedAt},
	}
})

// Endpoint reads one endpoint, or returns domain.ErrEndpointNotFound.
func Endpoint(ctx context.Context, q pg.Q, id domain.EndpointID) (domain.Endpoint, error) {
	return endpoints.Get(ctx, q, id, "")
}

// EndpointForUpdate reads one endpoint and locks its row until the transaction ends.
func EndpointForUpdate(ctx context.Context, tx pg.Tx, id domain.EndpointID) (domain.Endpoint, error) {
	return endpoints.Get(ctx, tx, id, "for no key update")
}

// Endpoints reads one page of the endpoints with a status, or of all endpoints if status is empty.
func Endpoints(ctx context.Context, q pg.Q, status domain.Status, r page.Request) (page.Rows[domain.Endpoint], error) {
	w := &page.Where{}
	w.Add(`e.tenant_id = @tenant and e.livemode = @live`)
	if status != "" {
		w.Add(`e.status = ?`, string(status))
	}
	tail, args := w.Page(r, "e")
	return page.Read(ctx, q, r, endpoints.Scan, endpoints.Select+tail, args...)
}

// CountEndpoints counts the endpoints of the tenant and mode. Until the transaction ends, other calls for the same tenant
// and mode wait.
func CountEndpoints(ctx context.Context, tx pg.Tx) (n int, err error) {
	b := &pgx.Batch{}
	b.Queue(`select pg_advisory_xact_lock(hashtextextended('endpoints' || current_setting('app.tenant_id') || current_setting('app.livemode'), 0))`)
	b.Queue(`select count(*) from endpoints where tenant_id = @tenant and livemode = @live`, pg.Args{}).QueryRow(pg.Into(&n))
	return pg.SendFor(ctx, tx, b, "count endpoints", &n)
}

// InsertEndpoint writes a new endpoint with an empty queue and returns the endpoint with its version and times.
func InsertEndpoint(ctx context.Context, tx pg.Tx, e domain.Endpoint) (domain.Endpoint, error) {
	tx.QueueAtCommit(`insert into endpoint_queues (tenant_id, livemode, endpoint_id) values (@tenant, @live, @id)`, pg.Args{"id": e.ID})
	return pg.One(ctx, tx, endpoints.Scan, domain.ErrEndpointNotFound, endpoints.InsertNow("")+` returning `+endpoints.Columns, endpoints.Args(e))
}

// UpdateEndpoint writes all fields of an endpoint that the transaction locked, and returns it with its new version and time.
func UpdateEndpoint(ctx context.Context, tx pg.Tx, e domain.Endpoint) (domain.Endpoint, error) {
	return pg.One(ctx, tx, endpoints.Scan, domain.ErrEndpointNotFound,
		endpoints.UpdateWith(`version = e.version + 1, updated_at = clock_timestamp()`)+` returning `+endpoints.Columns, endpoints.Args(e))
}

// DeleteEndpoint deletes an endpoint and its secrets. The transaction must have locked its row and queue. SweepQueue deletes the
// rows of its queue later.
func DeleteEndpoint(ctx context.Context, tx pg.Tx, id domain.EndpointID) error {
	return pg.Exec(ctx, tx, "delete endpoint", `delete from endpoints where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
}

// ResetQueue closes the breaker of an endpoint and makes its queue ready.
func ResetQueue(ctx context.Context, tx pg.Tx, id domain.EndpointID, now time.Time) error {
	return pg.Exec(ctx, tx, "reset queue", `update endpoint_queues set ready_at = @now, throttled = false, failed_at = '{}', failed = '{}',
		deferred_until = null, deferrals = 0 where tenant_id = @tenant and livemode = @live and endpoint_id = @id`,
		pg.Args{"id": id, "now": now})
}

// LockQueue locks the queue of an endpoint, so that no process claims from it until the transaction ends. Every
// transaction locks the endpoint's row first, then its row in endpoint_queues, then rows in queue.
func LockQueue(ctx context.Context, tx pg.Tx, id domain.EndpointID) error {
	return pg.Exec(ctx, tx, "lock queue", `
		select from endpoint_queues where tenant_id = @tenant and livemode = @live and endpoint_id = @id for no key update`, pg.Args{"id": id})
}

// EndpointGrant is a grant that holds enabled endpoints of a tenant and mode.
type EndpointGrant struct {
	TenantID ids.Tenant
	Livemode bool
	Holder   string
}

// EndpointGrants returns up to limit grants of all tenants that hold enabled endpoints, by their ids, after the given one. tx has the worker
// role.
func EndpointGrants(ctx context.Context, tx pg.Tx, after string, limit int) ([]EndpointGrant, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[EndpointGrant], `select distinct holder, tenant_id, livemode from endpoints
		where status = 'enabled' and holder like 'gr\_%' and holder > $1 order by holder, tenant_id, livemode limit $2`, after, limit)
}

// EndpointsOfGrant reads the enabled endpoints that a grant of the caller's tenant and mode holds, and locks their rows until the
// transaction ends.
func EndpointsOfGrant(ctx context.Context, tx pg.Tx, grant string) ([]domain.Endpoint, error) {
	return endpoints.Many(ctx, tx, `e.status = 'enabled' and e.holder like 'gr\_%' and e.holder = @grant
		order by e.id for no key update`, pg.Args{"grant": grant})
}
