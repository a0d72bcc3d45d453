package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// LockedClaims contains what LockClaims locked and what the results of the claims can change.
type LockedClaims struct {
	Valid     map[domain.DeliveryID]bool // the deliveries whose claims were not taken over
	Endpoints map[domain.EndpointKey]domain.Endpoint
	Queues    map[domain.EndpointKey]QueueState
	AtLimit   map[domain.EndpointKey]bool // the queues at their concurrency limit
}

// QueueState is the state of a queue that the results of attempts change.
type QueueState struct {
	domain.Breaker
	SlowUntil *time.Time
}

// lockedEndpoint is an endpoint with its tenant and mode.
type lockedEndpoint struct {
	TenantID ids.Tenant
	Livemode bool
	domain.Endpoint
}

// lockedQueue is a row of endpoint_queues with the state that results change.
type lockedQueue struct {
	keyRow
	FailedAt      []time.Time
	Failed        []domain.DeliveryID
	DeferredUntil *time.Time
	Deferrals     int
	SlowUntil     *time.Time
	AtLimit       bool `db:"throttled"`
}

// The statements of LockClaims. Rows of one table are locked in the order of their keys.
const (
	// lockQueueRows locks the rows of claims that are still valid. A claim that was taken over has another due_at.
	lockQueueRows = `
		with claims as (
			select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::boolean[], $5::timestamptz[], $6::uuid[])
				c(tenant_id, livemode, endpoint_id, first, until, delivery_id)
		)
		select q.delivery_id from queue q join claims c on ` + claimRow + `
		order by q.delivery_id for update of q`

	// claimRow joins a row of the queue with its claim.
	claimRow = `q.claimed and (q.tenant_id, q.livemode, q.endpoint_id, q.first, q.due_at, q.delivery_id)
		= (c.tenant_id, c.livemode, c.endpoint_id, c.first, c.until, c.delivery_id)`

	// lockQueues locks the queues of the endpoints, so that no process considers a queue to be at its limit while a result is
	// written.
	lockQueues = `
		with keys as (
			select distinct * from unnest($1::uuid[], $2::boolean[], $3::uuid[]) k(tenant_id, livemode, endpoint_id)
		)
		select l.tenant_id, l.livemode, l.endpoint_id, l.failed_at, l.failed, l.deferred_until, l.deferrals, l.slow_until, l.throttled
		from endpoint_queues l join keys k on (l.tenant_id, l.livemode, l.endpoint_id) = (k.tenant_id, k.livemode, k.endpoint_id)
		order by 1, 2, 3 for no key update of l`
)

// lockEndpoints locks the endpoints that an attempt can change. A failed attempt always changes its endpoint. A success changes
// only an endpoint with earlier failures.
var lockEndpoints = `
	with
	keys as (
		select distinct * from unnest($1::uuid[], $2::boolean[], $3::uuid[]) k(tenant_id, livemode, id)
	),
	failing as (
		select * from unnest($4::uuid[], $5::boolean[], $6::uuid[]) f(tenant_id, livemode, id)
	)
	select e.tenant_id, e.livemode, ` + endpoints.Columns + ` from endpoints e
	join keys k on (e.tenant_id, e.livemode, e.id) = (k.tenant_id, k.livemode, k.id)
	where e.consecutive_failures > 0 or (e.tenant_id, e.livemode, e.id) in (select * from failing)
	order by 1, 2, 3 for no key update of e`

// LockClaims locks the rows of claims, their endpoints and their queues, in this order, so that two transactions never wait for
// each other. It locks only the endpoints that an attempt can change: those in failing, and those with earlier failures. tx has the
// worker role.
func LockClaims(ctx context.Context, tx pg.Tx, claims []Claim, failing []domain.EndpointKey) (LockedClaims, error) {
	tenants, modes, endpoints := keyColumns(claims, Claim.Key)
	failingTenants, failingModes, failingEndpoints := keyColumns(failing, itself)
	var valid []domain.DeliveryID
	var locked []lockedEndpoint
	var queues []lockedQueue
	b := &pgx.Batch{}
	b.Queue(lockQueueRows, tenants, modes, endpoints,
		pg.Column(claims, func(c Claim) bool { return c.First }),
		pg.Column(claims, func(c Claim) time.Time { return c.Until }),
		pg.Column(claims, func(c Claim) [16]byte { return c.DeliveryID.UUID() }),
	).Query(pg.ListInto(&valid, pgx.RowTo[domain.DeliveryID]))
	b.Queue(lockEndpoints, tenants, modes, endpoints, failingTenants, failingModes, failingEndpoints).
		Query(pg.ListInto(&locked, pgx.RowToStructByName[lockedEndpoint]))
	b.Queue(lockQueues, tenants, modes, endpoints).Query(pg.ListInto(&queues, pgx.RowToStructByName[lockedQueue]))
	if err := pg.Send(ctx, tx, b, "lock claims"); err != nil {
		return LockedClaims{}, err
	}
	out := LockedClaims{
		Valid: map[domain.DeliveryID]bool{}, Endpoints: map[domain.EndpointKey]domain.Endpoint{},
		Queues: map[domain.EndpointKey]QueueState{}, AtLimit: map[domain.EndpointKey]bool{},
	}
	for _, id := range valid {
		out.Valid[id] = true
	}
	for _, e := range locked {
		out.Endpoints[domain.EndpointKey{Tenant: e.TenantID, Livemode: e.Livemode, Endpoint: e.ID}] = e.Endpoint
	}
	for _, q := range queues {
		out.Queues[q.key()] = QueueState{
			Breaker:   domain.Breaker{FailedAt: q.FailedAt, Failed: q.Failed, DeferredUntil: q.DeferredUntil, Deferrals: q.Deferrals},
			SlowUntil: q.SlowUntil,
		}
		out.AtLimit[q.key()] = q.AtLimit
	}
	return out, nil
}

// Completion is a claim with the result of its attempt.
type Completion struct {
	Claim   Claim
	Attempt *domain.Attempt // nil if no attempt was made
	Status  domain.DeliveryStatus
	Reason  *domain.FailureReason // set if Status is failed
	Next    *time.Time            // set if Status is pending: when the next attempt is due
}

// attemptsJSON returns the completion's attempt as an array of the log.
func (c Completion) attemptsJSON() (string, error) {
	if c.Attempt == nil {
		return `[]`, nil
	}
	text, err := json.Marshal([]domain.Attempt{*c.Attempt})
	if err != nil {
		return "", fmt.Errorf("encode attempt: %w", err)
	}
	return string(text), nil
}

// The statements of Complete.
const (
	// logCompletions writes the results into the log. It does not store the receiver's response to an erased delivery.
	logCompletions = `
		with completions as (
			select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::text[], $6::jsonb[], $7::timestamptz[], $8::text[])
				c(tenant_id, livemode, endpoint_id, id, status, attempts, next_attempt_at, failure_reason)
		)
		update deliveries d set status = c.status, next_attempt_at = c.next_attempt_at, failure_reason = c.failure_reason, updated_at = clock_timestamp(),
			attempts = d.attempts || case when d.erased then jsonb_set(c.attempts, '{0,response_body}', 'null') else c.attempts end
		from completions c
		where (d.tenant_id, d.livemode, d.endpoint_id, d.id) = (c.tenant_id, c.livemode, c.endpoint_id, c.id)`

	// withCompletedClaims is the beginning of the two statements below.
	withCompletedClaims = `
		with completed as (
			select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::boolean[], $5::timestamptz[], $6::uuid[], $7::timestamptz[], $8::boolean[])
				c(tenant_id, livemode, endpoint_id, first, until, delivery_id, next, attempted)
		)`

	// requeueClaims makes the rows of pending deliveries due again.
	requeueClaims = withCompletedClaims + `
		update queue q set claimed = false, first = q.first and not c.attempted, due_at = c.next, attempts = q.attempts + c.attempted::int
		from completed c where c.next is not null and ` + claimRow

	// deleteClaims deletes the rows of deliveries that succeeded or failed.
	deleteClaims = withCompletedClaims + `
		delete from queue q using completed c where c.next is null and ` + claimRow
)

// Complete writes the results of claims that LockClaims found valid into the log and the queue. In the queue, a row becomes due
// again or is deleted. The statements are sent with the commit.
func Complete(tx pg.Tx, completions []Completion) error {
	if len(completions) == 0 {
		return nil
	}
	attempts := make([]string, len(completions))
	for i, c := range completions {
		var err error
		if attempts[i], err = c.attemptsJSON(); err != nil {
			return err
		}
	}
	tenants, modes, endpoints := keyColumns(completions, func(c Completion) domain.EndpointKey { return c.Claim.Key() })
	id := pg.Column(completions, func(c Completion) [16]byte { return c.Claim.DeliveryID.UUID() })
	next := pg.Column(completions, func(c Completion) *time.Time { return c.Next })
	tx.QueueAtCommit(logCompletions, tenants, modes, endpoints, id,
		pg.Column(completions, func(c Completion) string { return string(c.Status) }), attempts, next,
		pg.Column(completions, func(c Completion) *string { return (*string)(c.Reason) }))
	claims := []any{
		tenants, modes, endpoints,
		pg.Column(completions, func(c Completion) bool { return c.Claim.First }),
		pg.Column(completions, func(c Completion) time.Time { return c.Claim.Until }), id, next,
		pg.Column(completions, func(c Completion) bool { return c.Attempt != nil }),
	}
	tx.QueueAtCommit(requeueClaims, claims...)
	tx.QueueAtCommit(deleteClaims, claims...)
	return nil
}

// WriteEndpointHealth writes the changes that attempts made to an endpoint that LockClaims locked. If the endpoint is now disabled,
// it counts the waiting deliveries, which will fail. The statement is sent with the commit.
func WriteEndpointHealth(tx pg.Tx, key domain.EndpointKey, e domain.Endpoint) {
	tx.QueueAtCommit(`
		with waiting as (
			select from queue q
			where (q.tenant_id, q.livemode, q.endpoint_id) = ($1, $2, $3) and not (q.claimed and q.due_at > clock_timestamp()) limit $7
		)
		update endpoints e set status = $4, disabled_reason = $5, consecutive_failures = $6,
			failed_waiting = case $4 when 'disabled' then (select count(*) from waiting) else 0 end,
			version = e.version + 1, updated_at = clock_timestamp()
		where (e.tenant_id, e.livemode, e.id) = ($1, $2, $3)`,
		key.Tenant, key.Livemode, key.Endpoint, string(e.Status), (*string)(e.DisabledReason), e.ConsecutiveFailures, domain.MaxCounted)
}

// WriteQueueState writes the changes that attempts made to a queue that LockClaims locked. It makes the queue ready, because one of
// its attempts completed. The statement is sent with the commit.
func WriteQueueState(tx pg.Tx, key domain.EndpointKey, s QueueState, now time.Time) {
	tx.QueueAtCommit(`
		update endpoint_queues l set failed_at = $4, failed = $5, deferred_until = $6, deferrals = $7, slow_until = $9, throttled = false, ready_at = least(l.ready_at, $8)
		where (l.tenant_id, l.livemode, l.endpoint_id) = ($1, $2, $3)`,
		key.Tenant, key.Livemode, key.Endpoint, notNil(s.FailedAt), notNil(s.Failed), s.DeferredUntil, s.Deferrals, now, s.SlowUntil)
}
