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

// ClaimLimit specifies how many deliveries of a queue can be claimed.
type ClaimLimit struct {
	Key           domain.EndpointKey
	Max           int
	FirstAttempts bool // first attempts can also be claimed
}

// Due is a delivery that can be claimed: the key of its row in the queue, and the size of its body.
type Due struct {
	TenantID   ids.Tenant
	Livemode   bool
	EndpointID domain.EndpointID
	Claimed    bool
	First      bool
	DueAt      time.Time
	DeliveryID domain.DeliveryID
	Queue      int // the index of its ClaimLimit
	Bytes      int // the size of the event's body
}

// readDue reads the due rows of several queues, up to the limit of each, with the sizes of their bodies. A queue's key has four
// parts (claimed, first), and each part is an index range in the order of due_at. A claimed row is due when its claim expires.
const readDue = `
	with
	-- limits: one row for each queue, numbered in the order of the list
	limits as (
		select * from unnest($2::uuid[], $3::boolean[], $4::uuid[], $5::int[], $6::boolean[]) with ordinality
			l(tenant_id, livemode, endpoint_id, max_rows, first_attempts, number)
	),
	-- candidates: the first due rows of each part of each queue's key, up to the queue's limit
	candidates as (
		select l.number, l.max_rows, q.*
		from limits l
		join (values (true, false), (true, true), (false, false), (false, true)) p(claimed, first) on l.first_attempts or not p.first
		cross join lateral (
			select q.* from queue q
			where (q.tenant_id, q.livemode, q.endpoint_id, q.claimed, q.first) = (l.tenant_id, l.livemode, l.endpoint_id, p.claimed, p.first)
				and q.due_at <= $1
			order by q.due_at, q.delivery_id limit l.max_rows) q
	),
	-- ranked: the candidates, numbered in the order of their queue
	ranked as (
		select c.*, row_number() over (partition by c.number order by c.due_at, c.delivery_id) as rank from candidates c
	)
	select r.tenant_id, r.livemode, r.endpoint_id, r.claimed, r.first, r.due_at, r.delivery_id, r.number - 1 as queue,
		coalesce(octet_length(e.body), 0) as bytes
	from ranked r left join events e on (e.tenant_id, e.livemode, e.id) = (r.tenant_id, r.livemode, r.event_id)
	where r.rank <= r.max_rows
	order by r.number, r.rank`

// DueDeliveries reads the due deliveries of queues that the transaction locked, in the order of the queues. Within a queue, the
// delivery that has been due longest comes first. A delivery whose claim has expired is also due.
func DueDeliveries(ctx context.Context, tx pg.Tx, limits []ClaimLimit, now time.Time) ([]Due, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	tenants, modes, endpoints := keyColumns(limits, func(l ClaimLimit) domain.EndpointKey { return l.Key })
	due, err := pg.Many(ctx, tx, pgx.RowToStructByName[Due], readDue, now, tenants, modes, endpoints,
		pg.Column(limits, func(l ClaimLimit) int32 { return int32(l.Max) }),
		pg.Column(limits, func(l ClaimLimit) bool { return l.FirstAttempts }))
	if err != nil {
		return nil, fmt.Errorf("read due deliveries: %w", err)
	}
	return due, nil
}

// Claim is a delivery that only this process can attempt until Until.
type Claim struct {
	TenantID   ids.Tenant
	Livemode   bool
	EndpointID domain.EndpointID
	DeliveryID domain.DeliveryID
	EventID    ids.Event
	EventType  string
	Body       []byte // nil if the log no longer contains the event
	First      bool
	Attempts   int // number of previous attempts
	Until      time.Time
}

// Key returns the key of the claim's endpoint.
func (c Claim) Key() domain.EndpointKey {
	return domain.EndpointKey{Tenant: c.TenantID, Livemode: c.Livemode, Endpoint: c.EndpointID}
}

// claimDue marks due rows as claimed and returns them with the events' bodies.
const claimDue = `
	with
	-- due: the keys of the rows
	due as (
		select * from unnest($2::uuid[], $3::boolean[], $4::uuid[], $5::boolean[], $6::boolean[], $7::timestamptz[], $8::uuid[])
			d(tenant_id, livemode, endpoint_id, claimed, first, due_at, delivery_id)
	),
	claims as (
		update queue q set claimed = true, due_at = $1 from due d
		where (q.tenant_id, q.livemode, q.endpoint_id, q.claimed, q.first, q.due_at, q.delivery_id)
			= (d.tenant_id, d.livemode, d.endpoint_id, d.claimed, d.first, d.due_at, d.delivery_id)
		returning q.tenant_id, q.livemode, q.endpoint_id, q.delivery_id, q.event_id, q.first, q.attempts, q.due_at as until
	)
	select c.*, coalesce(e.type, '') as event_type, e.body
	from claims c left join events e on (e.tenant_id, e.livemode, e.id) = (c.tenant_id, c.livemode, c.event_id)`

// ClaimDue claims deliveries that DueDeliveries returned in the same transaction. The claims expire at until.
func ClaimDue(ctx context.Context, tx pg.Tx, due []Due, until time.Time) ([]Claim, error) {
	if len(due) == 0 {
		return nil, nil
	}
	tenants, modes, endpoints := keyColumns(due, func(d Due) domain.EndpointKey {
		return domain.EndpointKey{Tenant: d.TenantID, Livemode: d.Livemode, Endpoint: d.EndpointID}
	})
	claims, err := pg.Many(ctx, tx, pgx.RowToStructByName[Claim], claimDue, until, tenants, modes, endpoints,
		pg.Column(due, func(d Due) bool { return d.Claimed }),
		pg.Column(due, func(d Due) bool { return d.First }),
		pg.Column(due, func(d Due) time.Time { return d.DueAt }),
		pg.Column(due, func(d Due) [16]byte { return d.DeliveryID.UUID() }))
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	return claims, nil
}
