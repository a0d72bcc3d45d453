package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// endpointColumns are the columns of domain.Endpoint.
const endpointColumns = `e.id, e.url, e.event_types, e.description, e.status, e.disabled_reason, e.max_in_flight,
	e.max_per_second, e.consecutive_failures, e.failed_waiting, e.version, e.created_at, e.updated_at`

// Endpoint reads one endpoint, or returns domain.ErrEndpointNotFound.
func Endpoint(ctx context.Context, q pg.Q, id domain.EndpointID) (domain.Endpoint, error) {
	return one[domain.Endpoint](ctx, q, domain.ErrEndpointNotFound, `select `+endpointColumns+` from endpoints e where e.id = $1`, id)
}

// EndpointForUpdate reads one endpoint and locks its row until the transaction ends.
func EndpointForUpdate(ctx context.Context, tx pg.Tx, id domain.EndpointID) (domain.Endpoint, error) {
	return one[domain.Endpoint](ctx, tx, domain.ErrEndpointNotFound, `select `+endpointColumns+` from endpoints e where e.id = $1 for no key update`, id)
}

// Endpoints reads one page of the endpoints with a status, or of all endpoints when status is empty.
func Endpoints(ctx context.Context, q pg.Q, status domain.Status, r page.Request) (page.Rows[domain.Endpoint], error) {
	w := &page.Where{}
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
	b.Queue(`select count(*) from endpoints`)
	res := tx.SendBatch(ctx, b)
	defer res.Close() //nolint:errcheck // the scan has the error
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
	tx.QueueAtCommit(`insert into lanes (endpoint_id) values ($1)`, e.ID)
	return one[domain.Endpoint](ctx, tx, domain.ErrEndpointNotFound, `
		with stamp as materialized (select clock_timestamp() as at)
		insert into endpoints as e (id, url, event_types, description, max_in_flight, max_per_second, created_at, updated_at)
		select $1, $2, $3, $4, $5, $6, at, at from stamp
		returning `+endpointColumns, e.ID, e.URL, e.EventTypes, e.Description, e.MaxInFlight, e.MaxPerSecond)
}

// UpdateEndpoint writes all fields of an endpoint that the transaction has locked, and returns it with its new version and
// time.
func UpdateEndpoint(ctx context.Context, tx pg.Tx, e domain.Endpoint) (domain.Endpoint, error) {
	return one[domain.Endpoint](ctx, tx, domain.ErrEndpointNotFound, `
		update endpoints e set url = $2, event_types = $3, description = $4, status = $5, disabled_reason = $6, max_in_flight = $7,
		       max_per_second = $8, consecutive_failures = $9, version = e.version + 1, updated_at = clock_timestamp()
		where e.id = $1
		returning `+endpointColumns, e.ID, e.URL, e.EventTypes, e.Description, string(e.Status), (*string)(e.DisabledReason),
		e.MaxInFlight, e.MaxPerSecond, e.ConsecutiveFailures)
}

// DeleteEndpoint deletes an endpoint whose row and queue the transaction has locked, with its secrets. SweepQueue deletes
// the rows of its queue later.
func DeleteEndpoint(ctx context.Context, tx pg.Tx, id domain.EndpointID) error {
	if _, err := tx.Exec(ctx, `delete from endpoints where id = $1`, id); err != nil {
		return fmt.Errorf("delete endpoint: %w", err)
	}
	return nil
}

// ResetQueue closes the breaker of an endpoint and makes its queue ready.
func ResetQueue(ctx context.Context, tx pg.Tx, id domain.EndpointID, now time.Time) error {
	_, err := tx.Exec(ctx, `update lanes set ready_at = $2, crowded = false, failed_at = '{}', failed = '{}',
		deferred_until = null, deferrals = 0 where endpoint_id = $1`, id, now)
	if err != nil {
		return fmt.Errorf("reset queue: %w", err)
	}
	return nil
}

// LockQueue locks the queue of an endpoint, so that no process claims from it until the transaction ends. Every
// transaction locks the endpoint's row first, then its row in lanes, then rows in queue.
func LockQueue(ctx context.Context, tx pg.Tx, id domain.EndpointID) error {
	_, err := tx.Exec(ctx, `select from lanes where endpoint_id = $1 for no key update`, id)
	if err != nil {
		return fmt.Errorf("lock queue: %w", err)
	}
	return nil
}

// MissingEndpoint returns why an endpoint was not found: domain.ErrEndpointNotFound, or apperr.ErrMode when it is an endpoint
// of the other mode.
func MissingEndpoint(ctx context.Context, db *pg.DB, id domain.EndpointID) error {
	return InOtherMode(ctx, db, func(ctx context.Context, q pg.Q) error {
		_, err := Endpoint(ctx, q, id)
		return err
	})
}
