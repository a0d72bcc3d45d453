package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// The number and the age of what waits, of all tenants and modes.
var (
	// UnfinishedIntents are the intents whose call is in progress or has an unknown outcome. The age of each is the time since the first call
	// of the request that waits for it. New attempts, and earlier requests that were refused, do not change it.
	UnfinishedIntents = waiting(`select p.begun_at as since from payment_intents p where p.leased_until is not null and p.status = 'creating'`)
	// UnfinishedEvents are the unprocessed events of the gateway about known intents.
	UnfinishedEvents = waiting(`select e.received_at as since from gateway_events e where e.due_at is not null and exists (select from payment_intents p
		where p.tenant_id = e.tenant_id and p.livemode = e.livemode and p.gateway_id = e.intent)`)
	// UnfinishedRefunds are the refunds with a call that is in progress or has an unknown outcome.
	UnfinishedRefunds = waiting(`select r.created_at as since from refunds r where r.leased_until is not null`)
	// UnfinishedCancellations are the bookings whose open intents must be canceled.
	UnfinishedCancellations = waiting(`select l.noted_at as since from lost_bookings l`)
	// UnfinishedSettlements are the bookings whose payments must be settled.
	UnfinishedSettlements = waiting(`select s.noted_at as since from booking_settlements s`)
	// OwedNew are the owed refunds that no worker has checked yet.
	OwedNew = waiting(`select o.created_at as since from automatic_refunds o where o.remaining is null`)
	// OwedFailed are the owed refunds with a failed refund. The age is the time since the first failure.
	OwedFailed = waiting(owed+`<> $2`, domain.ErrNothingToRefund.Code)
	// OwedWithoutPayment are the owed refunds whose payments have nothing left to refund by card. A person has to return them in another way.
	OwedWithoutPayment = waiting(owed+`= $2`, domain.ErrNothingToRefund.Code)
	// OldestReconciliation are the accounts. The age is the longest time since the comparison of one of them ended.
	OldestReconciliation = waiting(`select r.finished_at as since from gateway_reconciliations r`)
)

const owed = `select o.failed_at as since from automatic_refunds o where o.state = 'open' and o.failed_at is not null and coalesce(o.failure ->> 'code', '') `

func waiting(sql string, args ...any) operation.Measure {
	return func(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
		return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, `select count(*)::int as count,
			greatest(extract(epoch from $1::timestamptz - min(since)), 0)::float8 as age from (`+sql+`) waiting`, append([]any{real}, args...)...)
	}
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
