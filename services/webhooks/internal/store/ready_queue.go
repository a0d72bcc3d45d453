package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// ReadyQueue is an endpoint queue that the transaction locked, with the data for its attempts.
type ReadyQueue struct {
	domain.EndpointQueue
	URL       string
	SecretIDs []domain.SecretID // the current secret first
	Sealed    [][]byte
	Headers   []byte // sealed; empty if the endpoint has none
	Suspended bool   // the tenant is not active: the deliveries wait
}

// queueRow is a row of the table endpoint_queues with the columns of its endpoint that the dispatcher needs.
type queueRow struct {
	TenantID      ids.Tenant
	Livemode      bool
	EndpointID    domain.EndpointID
	URL           string
	Enabled       bool
	MaxInFlight   int
	MaxPerSecond  int
	InFlight      int
	StartedAt     []time.Time `db:"begun_at"`
	Started       []int32     `db:"begun"`
	FailedAt      []time.Time
	Failed        []domain.DeliveryID
	DeferredUntil *time.Time
	Deferrals     int
	SlowUntil     *time.Time
	SecretIDs     []domain.SecretID
	Sealed        [][]byte
	SealedHeaders []byte
	Suspended     bool
}

// takeWakeups makes queues with wakeups (rows of the table wakeups) ready and deletes these wakeups. The update uses no value of
// the snapshot, because the row in the snapshot may be older than its lock.
const takeWakeups = `
	with
	-- oldest: the oldest wakeups
	oldest as materialized (
		select tenant_id, livemode, endpoint_id, id from wakeups order by id limit $2
	),
	-- woken: one row for each endpoint that they are for, with their ids
	woken as (
		select tenant_id, livemode, endpoint_id, array_agg(id) as wakeups from oldest group by 1, 2, 3
	),
	-- locked: the queues of these endpoints; one that another transaction has locked is left out and keeps its wakeups
	locked as materialized (
		select l.*, w.wakeups from woken w cross join lateral (
			select l.tenant_id, l.livemode, l.endpoint_id from endpoint_queues l
			where (l.tenant_id, l.livemode, l.endpoint_id) = (w.tenant_id, w.livemode, w.endpoint_id)
			for no key update skip locked) l
	),
	deleted as (
		delete from wakeups where id = any(array(select unnest(k.wakeups) from locked k))
	)
	update endpoint_queues l set ready_at = least(l.ready_at, $1) from locked k
	where (l.tenant_id, l.livemode, l.endpoint_id) = (k.tenant_id, k.livemode, k.endpoint_id)`

// maxWakeups is the maximum number of wakeups that one transaction processes.
const maxWakeups = 1000

// lockReady locks the queues that have been ready longest, and skips those that another transaction has locked.
const lockReady = `
	select tenant_id, livemode, endpoint_id from endpoint_queues where ready_at <= $1
	order by ready_at limit $2 for no key update skip locked`

// lockReadyQueues processes the wakeups, then locks up to limit ready queues, in one round trip.
func lockReadyQueues(ctx context.Context, tx pg.Tx, now time.Time, limit int) ([]domain.EndpointKey, error) {
	var rows []keyRow
	b := &pgx.Batch{}
	b.Queue(takeWakeups, now, maxWakeups)
	b.Queue(lockReady, now, limit).Query(pg.ListInto(&rows, pgx.RowToStructByName[keyRow]))
	err := pg.Send(ctx, tx, b, "lock ready queues")
	return pg.Column(rows, keyRow.key), err
}

// readQueues reads locked queues with their endpoints, in the order of the given keys.
const readQueues = `
	with locked as (
		select * from unnest($2::uuid[], $3::boolean[], $4::uuid[]) with ordinality k(tenant_id, livemode, endpoint_id, position)
	)
	select l.tenant_id, l.livemode, l.endpoint_id, e.url, e.status = 'enabled' as enabled, e.max_in_flight, e.max_per_second, c.in_flight,
		l.begun_at, l.begun, l.failed_at, l.failed, l.deferred_until, l.deferrals, l.slow_until, s.secret_ids, s.sealed,
		e.sealed_headers,
		exists (select from tenant_states t where (t.tenant_id, t.livemode) = (k.tenant_id, k.livemode) and t.status <> 'active') as suspended
	from locked k
	join endpoint_queues l on (l.tenant_id, l.livemode, l.endpoint_id) = (k.tenant_id, k.livemode, k.endpoint_id)
	join endpoints e on (e.tenant_id, e.livemode, e.id) = (k.tenant_id, k.livemode, k.endpoint_id)
	-- c: the number of claims that have not expired
	cross join lateral (
		select count(*)::int as in_flight from queue q
		where (q.tenant_id, q.livemode, q.endpoint_id) = (k.tenant_id, k.livemode, k.endpoint_id) and q.claimed and q.due_at > $1) c
	-- s: the secrets that sign now, the newest first
	cross join lateral (
		select array_agg(s.id order by s.id desc) as secret_ids, array_agg(s.sealed order by s.id desc) as sealed from endpoint_secrets s
		where (s.tenant_id, s.livemode, s.endpoint_id) = (k.tenant_id, k.livemode, k.endpoint_id) and (s.expires_at is null or s.expires_at > $1)) s
	order by k.position`

// ReadyQueues locks up to limit ready queues and returns them, the one that has been ready longest first. It skips queues that
// another transaction has locked. It reads the queues after it has locked them, so it includes every attempt that other processes
// started for them. tx has the worker role.
func ReadyQueues(ctx context.Context, tx pg.Tx, now time.Time, limit int) ([]ReadyQueue, error) {
	locked, err := lockReadyQueues(ctx, tx, now, limit)
	if err != nil || len(locked) == 0 {
		return nil, err
	}
	tenants, modes, endpoints := keyColumns(locked, itself)
	rows, err := pg.Many(ctx, tx, pgx.RowToStructByName[queueRow], readQueues, now, tenants, modes, endpoints)
	if err != nil {
		return nil, fmt.Errorf("read ready queues: %w", err)
	}
	return pg.Column(rows, func(r queueRow) ReadyQueue {
		return ReadyQueue{
			EndpointQueue: domain.EndpointQueue{
				Key:     domain.EndpointKey{Tenant: r.TenantID, Livemode: r.Livemode, Endpoint: r.EndpointID},
				Enabled: r.Enabled, MaxInFlight: r.MaxInFlight, MaxPerSecond: r.MaxPerSecond, InFlight: r.InFlight,
				RateWindow: domain.RateWindow{At: r.StartedAt, Started: r.Started},
				Breaker:    domain.Breaker{FailedAt: r.FailedAt, Failed: r.Failed, DeferredUntil: r.DeferredUntil, Deferrals: r.Deferrals},
				Speed:      domain.SpeedAt(r.SlowUntil, now),
			},
			URL: r.URL, SecretIDs: r.SecretIDs, Sealed: r.Sealed, Headers: r.SealedHeaders, Suspended: r.Suspended,
		}
	}), nil
}

// Schedule is the state of a queue after a pass. It determines when the queue is ready next.
type Schedule struct {
	Key           domain.EndpointKey
	RateWindow    domain.RateWindow
	NotBefore     time.Time
	DeferredUntil *time.Time // end of the time in which the breaker defers first attempts
	AtLimit       bool       // the queue is at its concurrency limit; the next attempt that completes makes it ready
}

// reschedule writes the state of one queue, and sets its next ready time: when its next delivery is due, but not before
// NotBefore.
const reschedule = `
	with
	-- next_due: when the first row of each part of the queue's key is due; first attempts wait for the breaker ($8)
	next_due as (
		select case when p.first then greatest($8::timestamptz, q.due_at) else q.due_at end as at
		from (values (true, false), (false, false), (true, true), (false, true)) p(claimed, first)
		cross join lateral (
			select q.due_at from queue q
			where (q.tenant_id, q.livemode, q.endpoint_id, q.claimed, q.first) = ($1, $2, $3, p.claimed, p.first)
			order by q.due_at limit 1) q
	)
	update endpoint_queues l set begun_at = $4, begun = $5, throttled = $6,
		ready_at = greatest($7, coalesce((select min(at) from next_due), 'infinity'))
	where (l.tenant_id, l.livemode, l.endpoint_id) = ($1, $2, $3)`

// Reschedule sets the time at which each queue is ready next. The statements are sent with the commit.
func Reschedule(tx pg.Tx, schedules []Schedule) {
	for _, s := range schedules {
		tx.QueueAtCommit(reschedule, s.Key.Tenant, s.Key.Livemode, s.Key.Endpoint,
			notNil(s.RateWindow.At), notNil(s.RateWindow.Started), s.AtLimit, s.NotBefore, s.DeferredUntil)
	}
}
