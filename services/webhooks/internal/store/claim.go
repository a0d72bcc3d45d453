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

// ReadyLane is a lane that this transaction serves, with what its deliveries need.
type ReadyLane struct {
	domain.Lane
	URL       string
	SecretIDs []domain.SecretID // the present one first
	Sealed    [][]byte
}

type laneRow struct {
	TenantID      ids.Tenant
	Livemode      bool
	EndpointID    domain.EndpointID
	URL           string
	Enabled       bool
	MaxInFlight   int
	MaxPerSecond  int
	InFlight      int
	BegunAt       []time.Time
	Begun         []int32
	FailedAt      []time.Time
	Failed        []domain.DeliveryID
	DeferredUntil *time.Time
	Deferrals     int
	SlowUntil     *time.Time
	SecretIDs     []domain.SecretID
	Sealed        [][]byte
}

// takeSignals makes the lanes ready for which something was queued. The signals of one that is being served stay.
// What is set does not depend on what the statement saw of a lane, which may be older than its lock.
const takeSignals = `
	with given as materialized (
		select tenant_id, livemode, endpoint_id, id from signals order by id limit $2
	), mine as materialized (
		select l.*, s.signals from (
			select tenant_id, livemode, endpoint_id, array_agg(id) as signals from given group by 1, 2, 3) s cross join lateral (
			select l.tenant_id, l.livemode, l.endpoint_id from lanes l
			where l.tenant_id = s.tenant_id and l.livemode = s.livemode and l.endpoint_id = s.endpoint_id
			for no key update skip locked) l
	), gone as (
		delete from signals where id = any(array(select unnest(m.signals) from mine m))
	)
	update lanes l set ready_at = least(l.ready_at, $1) from mine m
	where l.tenant_id = m.tenant_id and l.livemode = m.livemode and l.endpoint_id = m.endpoint_id`

const signalsAtOnce = 1000

type lockedLane struct {
	TenantID   ids.Tenant
	Livemode   bool
	EndpointID domain.EndpointID
}

// lockLanes locks lanes that are ready, those first that have waited longest, in one round trip with the signals.
func lockLanes(ctx context.Context, tx pg.Tx, now time.Time, limit int) ([]lockedLane, error) {
	b := &pgx.Batch{}
	b.Queue(takeSignals, now, signalsAtOnce)
	b.Queue(`select tenant_id, livemode, endpoint_id from lanes where ready_at <= $1
		order by ready_at limit $2 for no key update skip locked`, now, limit)
	res := tx.SendBatch(ctx, b)
	_, err := res.Exec()
	var locked []lockedLane
	if err == nil {
		locked, err = collect(res, pgx.RowToStructByName[lockedLane])
	}
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("lock lanes: %w", err)
	}
	return locked, nil
}

// ReadyLanes locks up to limit lanes that are ready, and returns them in the order in which they have waited; others
// that are being served are passed over. What they say is read once they are locked: what others began for them
// before counts. tx has the worker role.
func ReadyLanes(ctx context.Context, tx pg.Tx, now time.Time, limit int) ([]ReadyLane, error) {
	locked, err := lockLanes(ctx, tx, now, limit)
	if err != nil || len(locked) == 0 {
		return nil, err
	}
	tenants, live, endpoints := keys(locked, func(l lockedLane) domain.LaneKey {
		return domain.LaneKey{Tenant: l.TenantID, Livemode: l.Livemode, Endpoint: l.EndpointID}
	})
	rows, err := many[laneRow](ctx, tx, `
		select l.tenant_id, l.livemode, l.endpoint_id, e.url, e.status = 'enabled' as enabled, e.max_in_flight, e.max_per_second,
			(select count(*) from queue q where q.tenant_id = l.tenant_id and q.livemode = l.livemode
				and q.endpoint_id = l.endpoint_id and q.claimed and q.due_at > $1)::int as in_flight,
			l.begun_at, l.begun, l.failed_at, l.failed, l.deferred_until, l.deferrals, l.slow_until,
			s.secret_ids, s.sealed
		from unnest($2::uuid[], $3::boolean[], $4::uuid[]) with ordinality k(tenant_id, livemode, endpoint_id, place)
		join lanes l on l.tenant_id = k.tenant_id and l.livemode = k.livemode and l.endpoint_id = k.endpoint_id
		join endpoints e on e.tenant_id = l.tenant_id and e.livemode = l.livemode and e.id = l.endpoint_id
		cross join lateral (select array_agg(s.id order by s.id desc) as secret_ids, array_agg(s.sealed order by s.id desc) as sealed
			from endpoint_secrets s where s.tenant_id = l.tenant_id and s.livemode = l.livemode and s.endpoint_id = l.endpoint_id
				and (s.expires_at is null or s.expires_at > $1)) s
		order by k.place`, now, tenants, live, endpoints)
	if err != nil {
		return nil, fmt.Errorf("ready lanes: %w", err)
	}
	out := make([]ReadyLane, len(rows))
	for i, r := range rows {
		out[i] = ReadyLane{
			Lane: domain.Lane{
				Key:     domain.LaneKey{Tenant: r.TenantID, Livemode: r.Livemode, Endpoint: r.EndpointID},
				Enabled: r.Enabled, MaxInFlight: r.MaxInFlight, MaxPerSecond: r.MaxPerSecond, InFlight: r.InFlight,
				Pace:    domain.Pace{At: r.BegunAt, Begun: r.Begun},
				Breaker: domain.Breaker{FailedAt: r.FailedAt, Failed: r.Failed, DeferredUntil: r.DeferredUntil, Deferrals: r.Deferrals},
				Speed:   domain.SpeedAt(r.SlowUntil, now),
			},
			URL: r.URL, SecretIDs: r.SecretIDs, Sealed: r.Sealed,
		}
	}
	return out, nil
}

// Share is how many of a lane's deliveries may be claimed.
type Share struct {
	Key    domain.LaneKey
	N      int
	Firsts bool
}

// Due is a delivery that may be claimed.
type Due struct {
	TenantID   ids.Tenant
	Livemode   bool
	EndpointID domain.EndpointID
	Claimed    bool
	First      bool
	DueAt      time.Time
	DeliveryID domain.DeliveryID
	Lane       int // its share's place in the list
	Bytes      int // of the event's body
}

// DueDeliveries reads the deliveries that are due in lanes which the transaction holds, in the order of the lanes and
// within a lane in that of their times; what an ended process had claimed is due as well.
func DueDeliveries(ctx context.Context, tx pg.Tx, shares []Share, now time.Time) ([]Due, error) {
	if len(shares) == 0 {
		return nil, nil
	}
	tenants, live, endpoints := keys(shares, func(s Share) domain.LaneKey { return s.Key })
	n, firsts := make([]int32, len(shares)), make([]bool, len(shares))
	for i, s := range shares {
		n[i], firsts[i] = int32(s.N), s.Firsts //nolint:gosec // bounded by max_in_flight
	}
	due, err := many[Due](ctx, tx, `
		select q.tenant_id, q.livemode, q.endpoint_id, q.claimed, q.first, q.due_at, q.delivery_id, l.lane - 1 as lane,
			coalesce(octet_length(e.body), 0) as bytes
		from unnest($2::uuid[], $3::boolean[], $4::uuid[], $5::int[], $6::boolean[]) with ordinality l(tenant_id, livemode, endpoint_id, n, firsts, lane)
		cross join lateral (
			select x.* from (values (true, false), (true, true), (false, false), (false, true)) k(claimed, first)
			cross join lateral (
				select q.* from queue q where q.tenant_id = l.tenant_id and q.livemode = l.livemode and q.endpoint_id = l.endpoint_id
					and q.claimed = k.claimed and q.first = k.first and q.due_at <= $1
				order by q.due_at, q.delivery_id limit l.n) x
			where l.firsts or not k.first
			order by x.due_at, x.delivery_id limit l.n) q
		left join events e on e.tenant_id = q.tenant_id and e.livemode = q.livemode and e.id = q.event_id
		order by l.lane, q.due_at, q.delivery_id`,
		now, tenants, live, endpoints, n, firsts)
	if err != nil {
		return nil, fmt.Errorf("due deliveries: %w", err)
	}
	return due, nil
}

// Claim is one delivery that is this process's until Until.
type Claim struct {
	TenantID   ids.Tenant
	Livemode   bool
	EndpointID domain.EndpointID
	DeliveryID domain.DeliveryID
	EventID    ids.Event
	EventType  string
	Body       []byte // nil: the event's days are over
	First      bool
	Attempts   int
	Until      time.Time
}

// Key is the claim's lane.
func (c Claim) Key() domain.LaneKey {
	return domain.LaneKey{Tenant: c.TenantID, Livemode: c.Livemode, Endpoint: c.EndpointID}
}

// ClaimDue claims deliveries that the transaction has found due, until a time.
func ClaimDue(ctx context.Context, tx pg.Tx, due []Due, until time.Time) ([]Claim, error) {
	if len(due) == 0 {
		return nil, nil
	}
	tenants, live, endpoints := keys(due, func(d Due) domain.LaneKey {
		return domain.LaneKey{Tenant: d.TenantID, Livemode: d.Livemode, Endpoint: d.EndpointID}
	})
	claimed, firsts := make([]bool, len(due)), make([]bool, len(due))
	at, id := make([]time.Time, len(due)), make([][16]byte, len(due))
	for i, d := range due {
		claimed[i], firsts[i], at[i], id[i] = d.Claimed, d.First, d.DueAt, d.DeliveryID.UUID()
	}
	claims, err := many[Claim](ctx, tx, `
		with mine as (
			update queue q set claimed = true, due_at = $1
			from unnest($2::uuid[], $3::boolean[], $4::uuid[], $5::boolean[], $6::boolean[], $7::timestamptz[], $8::uuid[])
				d(tenant_id, livemode, endpoint_id, claimed, first, due_at, delivery_id)
			where q.tenant_id = d.tenant_id and q.livemode = d.livemode and q.endpoint_id = d.endpoint_id
				and q.claimed = d.claimed and q.first = d.first and q.due_at = d.due_at and q.delivery_id = d.delivery_id
			returning q.tenant_id, q.livemode, q.endpoint_id, q.delivery_id, q.event_id, q.first, q.attempts, q.due_at as until
		)
		select m.*, coalesce(e.type, '') as event_type, e.body
		from mine m left join events e on e.tenant_id = m.tenant_id and e.livemode = m.livemode and e.id = m.event_id`,
		until, tenants, live, endpoints, claimed, firsts, at, id)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return claims, nil
}

// Served is a lane after its turn.
type Served struct {
	Key           domain.LaneKey
	Pace          domain.Pace
	NotBefore     time.Time
	DeferredUntil *time.Time
	Crowded       bool
}

// EndTurns says when each lane is ready next: when something is due, and not before its bounds allow. It goes
// with the commit.
func EndTurns(tx pg.Tx, served []Served) {
	for _, s := range served {
		tx.Finally(`
			update lanes l set begun_at = $4, begun = $5, crowded = $6, ready_at = greatest($7, least(
				(select q.due_at from queue q where q.tenant_id = $1 and q.livemode = $2 and q.endpoint_id = $3 and q.claimed and not q.first order by q.due_at limit 1),
				(select q.due_at from queue q where q.tenant_id = $1 and q.livemode = $2 and q.endpoint_id = $3 and not q.claimed and not q.first order by q.due_at limit 1),
				greatest($8::timestamptz, (select q.due_at from queue q where q.tenant_id = $1 and q.livemode = $2 and q.endpoint_id = $3 and q.claimed and q.first order by q.due_at limit 1)),
				greatest($8::timestamptz, (select q.due_at from queue q where q.tenant_id = $1 and q.livemode = $2 and q.endpoint_id = $3 and not q.claimed and q.first order by q.due_at limit 1)),
				'infinity'))
			where l.tenant_id = $1 and l.livemode = $2 and l.endpoint_id = $3`,
			s.Key.Tenant, s.Key.Livemode, s.Key.Endpoint, list(s.Pace.At), list(s.Pace.Begun), s.Crowded, s.NotBefore, s.DeferredUntil)
	}
}

// list is l as an array that is not NULL.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// keys takes lists apart for unnest.
func keys[T any](rows []T, key func(T) domain.LaneKey) (tenants [][16]byte, live []bool, endpoints [][16]byte) {
	for _, v := range rows {
		k := key(v)
		tenants, live, endpoints = append(tenants, k.Tenant.UUID()), append(live, k.Livemode), append(endpoints, k.Endpoint.UUID())
	}
	return tenants, live, endpoints
}

// Drop fails up to limit of a disabled endpoint's queued deliveries that are not on their way, those that an ended
// process had claimed included, in a transaction of the worker or of its tenant, and returns how many they were. One
// whose late end is just being written is left to it.
func Drop(ctx context.Context, tx pg.Tx, key domain.LaneKey, now time.Time, limit int) (int, error) {
	rows, err := tx.Query(ctx, `
		with gone as (
			delete from queue where ctid = any(array(
				select ctid from queue where tenant_id = $1 and livemode = $2 and endpoint_id = $3 and (not claimed or due_at <= $5)
				order by claimed, first, due_at, delivery_id limit $4 for update skip locked))
			returning delivery_id
		), failed as (
			update deliveries d set status = 'failed', failure_reason = 'endpoint_disabled', next_attempt_at = null, updated_at = clock_timestamp()
			where d.tenant_id = $1 and d.livemode = $2 and d.endpoint_id = $3 and d.id = any(array(select delivery_id from gone))
		)
		select count(*)::int from gone`, key.Tenant, key.Livemode, key.Endpoint, limit, now)
	if err != nil {
		return 0, fmt.Errorf("drop deliveries: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("drop deliveries: %w", err)
	}
	return n, nil
}

// SweepQueue deletes up to limit rows that are queued for endpoints that are no more, and as many of their signals,
// and reports whether there may be others. tx has the worker role.
func SweepQueue(ctx context.Context, tx pg.Tx, limit int64) (more bool, err error) {
	for _, table := range []string{"queue", "signals"} {
		tag, err := tx.Exec(ctx, `delete from `+table+` where ctid = any(array(
			select q.ctid from `+table+` q where not exists (select from lanes l
				where l.tenant_id = q.tenant_id and l.livemode = q.livemode and l.endpoint_id = q.endpoint_id)
			limit $1 for update of q))`, limit)
		if err != nil {
			return false, fmt.Errorf("sweep %s: %w", table, err)
		}
		more = more || tag.RowsAffected() == limit
	}
	return more, nil
}
