package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// endpointColumns are the columns of domain.Endpoint.
const endpointColumns = `e.id, e.url, e.event_types, e.description, e.status, e.disabled_reason, e.max_in_flight,
	e.max_per_second, e.created_by, e.holder, e.header_names, e.consecutive_failures, e.failed_waiting, e.version, e.created_at, e.updated_at`

const oneEndpoint = `select ` + endpointColumns + ` from endpoints e where e.tenant_id = @tenant and e.livemode = @live and e.id = @id`

// Endpoint reads one endpoint, or returns domain.ErrEndpointNotFound.
func Endpoint(ctx context.Context, q pg.Q, id domain.EndpointID) (domain.Endpoint, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Endpoint], domain.ErrEndpointNotFound, oneEndpoint, pg.Args{"id": id})
}

// EndpointForUpdate reads one endpoint and locks its row until the transaction ends.
func EndpointForUpdate(ctx context.Context, tx pg.Tx, id domain.EndpointID) (domain.Endpoint, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Endpoint], domain.ErrEndpointNotFound,
		oneEndpoint+` for no key update`, pg.Args{"id": id})
}

// Endpoints reads one page of the endpoints with a status, or of all endpoints if status is empty.
func Endpoints(ctx context.Context, q pg.Q, status domain.Status, r page.Request) (page.Rows[domain.Endpoint], error) {
	w := &page.Where{}
	w.Add(`e.tenant_id = @tenant and e.livemode = @live`)
	if status != "" {
		w.Add(`e.status = ?`, string(status))
	}
	tail, args := w.Page(r, "e")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.Endpoint], `select `+endpointColumns+` from endpoints e `+tail, args...)
}

// CountEndpoints counts the endpoints of the tenant and mode. Until the transaction ends, other calls for the same tenant
// and mode wait.
func CountEndpoints(ctx context.Context, tx pg.Tx) (int, error) {
	b := &pgx.Batch{}
	b.Queue(`select pg_advisory_xact_lock(hashtextextended('endpoints' || current_setting('app.tenant_id') || current_setting('app.livemode'), 0))`)
	b.Queue(`select count(*) from endpoints where tenant_id = @tenant and livemode = @live`, pg.Args{})
	res := tx.SendBatch(ctx, b)
	defer res.Close()
	if _, err := res.Exec(); err != nil {
		return 0, fmt.Errorf("lock endpoints: %w", err)
	}
	var n int
	if err := res.QueryRow().Scan(&n); err != nil {
		return 0, fmt.Errorf("count endpoints: %w", err)
	}
	return n, nil
}

// InsertEndpoint writes a new endpoint with an empty queue and returns the endpoint with its version and times.
func InsertEndpoint(ctx context.Context, tx pg.Tx, e domain.Endpoint) (domain.Endpoint, error) {
	tx.QueueAtCommit(`insert into endpoint_queues (tenant_id, livemode, endpoint_id) values (@tenant, @live, @id)`, pg.Args{"id": e.ID})
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Endpoint], domain.ErrEndpointNotFound, `
		with stamp as materialized (select clock_timestamp() as at)
		insert into endpoints as e (tenant_id, livemode, id, url, event_types, description, max_in_flight, max_per_second, header_names, created_by, holder, created_at, updated_at)
		select @tenant, @live, @id, @url, @event_types, @description, @max_in_flight, @max_per_second, @header_names, @created_by, @holder, at, at from stamp
		returning `+endpointColumns, endpointArgs(e))
}

// endpointArgs returns the columns to write, by name.
func endpointArgs(e domain.Endpoint) pg.Args {
	return pg.Args{
		"id": e.ID, "url": e.URL, "event_types": e.EventTypes, "description": e.Description, "status": string(e.Status),
		"disabled_reason": (*string)(e.DisabledReason), "max_in_flight": e.MaxInFlight, "max_per_second": e.MaxPerSecond,
		"consecutive_failures": e.ConsecutiveFailures, "header_names": notNil(e.HeaderNames),
		"created_by": e.CreatedBy, "holder": e.Holder, "failed_waiting": e.FailedWaiting,
	}
}

// UpdateEndpoint writes all fields of an endpoint that the transaction locked, and returns it with its new version and time.
func UpdateEndpoint(ctx context.Context, tx pg.Tx, e domain.Endpoint) (domain.Endpoint, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Endpoint], domain.ErrEndpointNotFound, `
		update endpoints e set url = @url, event_types = @event_types, description = @description, status = @status,
		       disabled_reason = @disabled_reason, max_in_flight = @max_in_flight, max_per_second = @max_per_second,
		       header_names = @header_names, consecutive_failures = @consecutive_failures,
		       failed_waiting = @failed_waiting, holder = @holder, version = e.version + 1, updated_at = clock_timestamp()
		where e.tenant_id = @tenant and e.livemode = @live and e.id = @id
		returning `+endpointColumns, endpointArgs(e))
}

// DeleteEndpoint deletes an endpoint and its secrets. The transaction must have locked its row and queue. SweepQueue deletes the
// rows of its queue later.
func DeleteEndpoint(ctx context.Context, tx pg.Tx, id domain.EndpointID) error {
	_, err := tx.Exec(ctx, `delete from endpoints where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": id})
	if err != nil {
		return fmt.Errorf("delete endpoint: %w", err)
	}
	return nil
}

// ResetQueue closes the breaker of an endpoint and makes its queue ready.
func ResetQueue(ctx context.Context, tx pg.Tx, id domain.EndpointID, now time.Time) error {
	_, err := tx.Exec(ctx, `update endpoint_queues set ready_at = @now, throttled = false, failed_at = '{}', failed = '{}',
		deferred_until = null, deferrals = 0 where tenant_id = @tenant and livemode = @live and endpoint_id = @id`,
		pg.Args{"id": id, "now": now})
	if err != nil {
		return fmt.Errorf("reset queue: %w", err)
	}
	return nil
}

// LockQueue locks the queue of an endpoint, so that no process claims from it until the transaction ends. Every
// transaction locks the endpoint's row first, then its row in endpoint_queues, then rows in queue.
func LockQueue(ctx context.Context, tx pg.Tx, id domain.EndpointID) error {
	_, err := tx.Exec(ctx, `
		select from endpoint_queues where tenant_id = @tenant and livemode = @live and endpoint_id = @id for no key update`, pg.Args{"id": id})
	if err != nil {
		return fmt.Errorf("lock queue: %w", err)
	}
	return nil
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
	return pg.Many(ctx, tx, pgx.RowToStructByName[domain.Endpoint], `select `+endpointColumns+` from endpoints e
		where e.tenant_id = @tenant and e.livemode = @live and e.status = 'enabled' and e.holder like 'gr\_%' and e.holder = @grant
		order by e.id for no key update`, pg.Args{"grant": grant})
}
