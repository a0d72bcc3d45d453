package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

const unfinished = `select count(*)::int as count, greatest(extract(epoch from $1::timestamptz - min(since)), 0)::float8 as age from (`

// UnfinishedIntents counts the intents, of all tenants and modes, whose call is in progress or has an unknown outcome. The age of
// each is the time since the first call of the request that waits for it. New attempts, and earlier requests that were refused, do
// not change it. tx has the worker role.
func UnfinishedIntents(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select p.begun_at as since from payment_intents p where p.leased_until is not null and p.status = 'creating') waiting`, real)
}

// UnfinishedEvents counts the unprocessed events of the gateway about known intents, of all tenants and modes. tx has the worker
// role.
func UnfinishedEvents(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select e.received_at as since from gateway_events e where e.due_at is not null and exists (select from payment_intents p
			where p.tenant_id = e.tenant_id and p.livemode = e.livemode and p.gateway_id = e.intent)) waiting`, real)
}

// UnfinishedRefunds counts the refunds, of all tenants and modes, with a call that is in progress or has an unknown outcome. tx has
// the worker role.
func UnfinishedRefunds(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select r.created_at as since from refunds r where r.leased_until is not null) waiting`, real)
}

// UnfinishedCancellations counts the bookings, of all tenants and modes, whose open intents must be canceled. tx has the worker
// role.
func UnfinishedCancellations(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`select l.noted_at as since from lost_bookings l) waiting`, real)
}

// UnfinishedSettlements counts the bookings, of all tenants and modes, whose payments must be settled. tx has the worker role.
func UnfinishedSettlements(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`select s.noted_at as since from booking_settlements s) waiting`, real)
}

// OwedNew counts the owed refunds, of all tenants and modes, that no worker has checked yet. tx has the worker role.
func OwedNew(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select o.created_at as since from automatic_refunds o
		where o.remaining is null) waiting`, real)
}

// OwedFailed counts the owed refunds, of all tenants and modes, with a failed refund, and measures the time since the first
// failure. tx has the worker role.
func OwedFailed(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return owed(ctx, tx, real, `<>`)
}

// OwedWithoutPayment counts the owed refunds whose payments have nothing left to refund by card. A person has to return them in
// another way.
func OwedWithoutPayment(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return owed(ctx, tx, real, `=`)
}

func owed(ctx context.Context, tx pg.Tx, real time.Time, compare string) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select o.failed_at as since from automatic_refunds o
		where o.state = 'open' and o.failed_at is not null and coalesce(o.failure ->> 'code', '') `+compare+` $2) waiting`, real, domain.ErrNothingToRefund.Code)
}

// Silent is the number of connected accounts of a mode whose events do not arrive.
type Silent struct {
	Events   domain.EventsState
	Livemode bool
	Count    int
}

// SilentAccounts counts the connected accounts of all tenants whose events do not arrive, by state and mode. tx has the worker
// role.
func SilentAccounts(ctx context.Context, tx pg.Tx) ([]Silent, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[Silent], `
		select s.events, m.livemode, count(a.id)::int as count
		from unnest(array['missing', 'late']) s (events) cross join unnest(array[false, true]) m (livemode)
		left join gateway_accounts a on a.events = s.events and a.livemode = m.livemode and a.disconnected_at is null
		group by s.events, m.livemode`)
}
