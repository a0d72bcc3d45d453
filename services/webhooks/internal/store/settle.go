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

// Held is what an ending of claims has to know.
type Held struct {
	Mine      map[domain.DeliveryID]bool // whose claim still holds
	Endpoints map[domain.LaneKey]domain.Endpoint
	Lanes     map[domain.LaneKey]LaneHealth
	Crowded   map[domain.LaneKey]bool // lanes that wait for one of these to end
}

// LaneHealth is what attempts change of a lane.
type LaneHealth struct {
	domain.Breaker
	SlowUntil *time.Time
}

type heldEndpoint struct {
	TenantID ids.Tenant
	Livemode bool
	domain.Endpoint
}

type heldLane struct {
	TenantID      ids.Tenant
	Livemode      bool
	EndpointID    domain.EndpointID
	FailedAt      []time.Time
	Failed        []domain.DeliveryID
	DeferredUntil *time.Time
	Deferrals     int
	SlowUntil     *time.Time
	Crowded       bool
}

// Hold locks claims that are to be ended, their lanes, so that nobody serves one meanwhile and takes it for crowded,
// and of their endpoints those that an attempt can change: those in failing, and those that have failed before. tx
// has the worker role. Endpoints come before lanes, both in the order of their keys, so that no two endings wait for
// each other.
func Hold(ctx context.Context, tx pg.Tx, claims []Claim, failing []domain.LaneKey) (Held, error) {
	b := &pgx.Batch{}
	tenants, live, endpoints := keys(claims, Claim.Key)
	firsts, until, deliveries := make([]bool, len(claims)), make([]time.Time, len(claims)), make([][16]byte, len(claims))
	for i, c := range claims {
		firsts[i], until[i], deliveries[i] = c.First, c.Until, c.DeliveryID.UUID()
	}
	b.Queue(`
		select q.delivery_id from queue q
		join unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::boolean[], $5::timestamptz[], $6::uuid[]) c(tenant_id, livemode, endpoint_id, first, until, id)
			on q.tenant_id = c.tenant_id and q.livemode = c.livemode and q.endpoint_id = c.endpoint_id
			and q.claimed and q.first = c.first and q.due_at = c.until and q.delivery_id = c.id
		order by q.delivery_id for update of q`, tenants, live, endpoints, firsts, until, deliveries)
	ft, fl, fe := keys(failing, func(k domain.LaneKey) domain.LaneKey { return k })
	b.Queue(`
		select e.tenant_id, e.livemode, `+endpointColumns+` from endpoints e
		join (select distinct * from unnest($1::uuid[], $2::boolean[], $3::uuid[])) k(tenant_id, livemode, id)
			on e.tenant_id = k.tenant_id and e.livemode = k.livemode and e.id = k.id
		where e.consecutive_failures > 0 or (e.tenant_id, e.livemode, e.id) in (select * from unnest($4::uuid[], $5::boolean[], $6::uuid[]))
		order by 1, 2, 3 for no key update of e`, tenants, live, endpoints, ft, fl, fe)
	b.Queue(`
		select l.tenant_id, l.livemode, l.endpoint_id, l.failed_at, l.failed, l.deferred_until, l.deferrals, l.slow_until, l.crowded from lanes l
		join (select distinct * from unnest($1::uuid[], $2::boolean[], $3::uuid[])) k(tenant_id, livemode, id)
			on l.tenant_id = k.tenant_id and l.livemode = k.livemode and l.endpoint_id = k.id
		order by 1, 2, 3 for no key update of l`, tenants, live, endpoints)
	res := tx.SendBatch(ctx, b)
	held, err := collectHeld(res)
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return Held{}, fmt.Errorf("hold claims: %w", err)
	}
	return held, nil
}

func collectHeld(res pgx.BatchResults) (Held, error) {
	out := Held{
		Mine: map[domain.DeliveryID]bool{}, Endpoints: map[domain.LaneKey]domain.Endpoint{},
		Lanes: map[domain.LaneKey]LaneHealth{}, Crowded: map[domain.LaneKey]bool{},
	}
	mine, err := collect(res, pgx.RowTo[domain.DeliveryID])
	if err != nil {
		return out, err
	}
	endpoints, err := collect(res, pgx.RowToStructByName[heldEndpoint])
	if err != nil {
		return out, err
	}
	lanes, err := collect(res, pgx.RowToStructByName[heldLane])
	if err != nil {
		return out, err
	}
	for _, id := range mine {
		out.Mine[id] = true
	}
	for _, e := range endpoints {
		out.Endpoints[domain.LaneKey{Tenant: e.TenantID, Livemode: e.Livemode, Endpoint: e.ID}] = e.Endpoint
	}
	for _, l := range lanes {
		key := domain.LaneKey{Tenant: l.TenantID, Livemode: l.Livemode, Endpoint: l.EndpointID}
		out.Lanes[key] = LaneHealth{
			Breaker:   domain.Breaker{FailedAt: l.FailedAt, Failed: l.Failed, DeferredUntil: l.DeferredUntil, Deferrals: l.Deferrals},
			SlowUntil: l.SlowUntil,
		}
		out.Crowded[key] = l.Crowded
	}
	return out, nil
}

func collect[T any](res pgx.BatchResults, row pgx.RowToFunc[T]) ([]T, error) {
	rows, err := res.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// Ended is a claim with what came of it.
type Ended struct {
	Claim   Claim
	Attempt *domain.Attempt // nil: there was none
	Status  domain.DeliveryStatus
	Reason  *domain.FailureReason // of a failed one
	Next    *time.Time            // of a pending one
}

// End writes what came of claims that Hold has found: the log's line, and the queue's row away or back. It goes
// with the commit.
func End(tx pg.Tx, ended []Ended) error {
	if len(ended) == 0 {
		return nil
	}
	tenants, live, endpoints := keys(ended, func(e Ended) domain.LaneKey { return e.Claim.Key() })
	id, status, attempts := make([][16]byte, len(ended)), make([]string, len(ended)), make([]string, len(ended))
	next, firsts, until := make([]*time.Time, len(ended)), make([]bool, len(ended)), make([]time.Time, len(ended))
	tried, reasons := make([]bool, len(ended)), make([]*string, len(ended))
	for i, e := range ended {
		line := []byte(`[]`)
		if e.Attempt != nil {
			var err error
			if line, err = json.Marshal([]domain.Attempt{*e.Attempt}); err != nil {
				return fmt.Errorf("encode attempt: %w", err)
			}
		}
		id[i], status[i], attempts[i], next[i] = e.Claim.DeliveryID.UUID(), string(e.Status), string(line), e.Next
		firsts[i], until[i], tried[i] = e.Claim.First, e.Claim.Until, e.Attempt != nil
		reasons[i] = (*string)(e.Reason)
	}
	tx.Finally(`
		update deliveries d set status = n.status, next_attempt_at = n.next, failure_reason = n.reason, updated_at = clock_timestamp(),
			attempts = d.attempts || case when d.erased then jsonb_set(n.attempts, '{0,response_body}', 'null') else n.attempts end
		from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::text[], $6::jsonb[], $7::timestamptz[], $8::text[]) n(tenant_id, livemode, endpoint_id, id, status, attempts, next, reason)
		where d.tenant_id = n.tenant_id and d.livemode = n.livemode and d.endpoint_id = n.endpoint_id and d.id = n.id`,
		tenants, live, endpoints, id, status, attempts, next, reasons)
	const claim = `unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::boolean[], $5::timestamptz[], $6::uuid[], $7::timestamptz[], $8::boolean[]) n(tenant_id, livemode, endpoint_id, first, until, id, next, tried)
		where q.tenant_id = n.tenant_id and q.livemode = n.livemode and q.endpoint_id = n.endpoint_id
			and q.claimed and q.first = n.first and q.due_at = n.until and q.delivery_id = n.id and n.next is `
	args := []any{tenants, live, endpoints, firsts, until, id, next, tried}
	tx.Finally(`update queue q set claimed = false, first = q.first and not n.tried, due_at = n.next, attempts = q.attempts + n.tried::int from `+claim+`not null`, args...)
	tx.Finally(`delete from queue q using `+claim+`null`, args...)
	return nil
}

// WriteHealth writes what attempts have changed of endpoints that Hold has locked; of one that is disabled now, how
// many deliveries wait and will fail with it. It goes with the commit.
func WriteHealth(tx pg.Tx, key domain.LaneKey, e domain.Endpoint) {
	tx.Finally(`
		update endpoints e set status = $4, disabled_reason = $5, consecutive_failures = $6,
			failed_waiting = case $4 when 'disabled' then (select count(*) from (select from queue q
				where q.tenant_id = $1 and q.livemode = $2 and q.endpoint_id = $3 and not (q.claimed and q.due_at > clock_timestamp()) limit $7) q) else 0 end, version = e.version + 1, updated_at = clock_timestamp()
		where e.tenant_id = $1 and e.livemode = $2 and e.id = $3`,
		key.Tenant, key.Livemode, key.Endpoint, string(e.Status), (*string)(e.DisabledReason), e.ConsecutiveFailures, domain.MaxCounted)
}

// WriteLane writes what attempts have changed of a lane that Hold has locked, and makes the lane ready: one of its
// deliveries has ended.
func WriteLane(tx pg.Tx, key domain.LaneKey, h LaneHealth, now time.Time) {
	tx.Finally(`
		update lanes l set failed_at = $4, failed = $5, deferred_until = $6, deferrals = $7, slow_until = $9, crowded = false, ready_at = least(l.ready_at, $8)
		where l.tenant_id = $1 and l.livemode = $2 and l.endpoint_id = $3`,
		key.Tenant, key.Livemode, key.Endpoint, list(h.FailedAt), list(h.Failed), h.DeferredUntil, h.Deferrals, now, h.SlowUntil)
}
