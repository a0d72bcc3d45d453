package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// cancelMax is the maximum number of bookings of one call of CancelAll.
const cancelMax = 1000

// CancelAll makes the open intents of a tenant in live mode due to be cancelled, of at most 1,000 bookings. tx has the worker role.
func CancelAll(ctx context.Context, tx pg.Tx, tenant ids.Tenant, now time.Time) error {
	return pg.Exec(ctx, tx, "cancel the intents of a tenant", `
		insert into lost_bookings (tenant_id, livemode, booking_id, due_at)
		select distinct p.tenant_id, p.livemode, p.booking_id, $2::timestamptz from payment_intents p
		where p.tenant_id = $1 and p.livemode and `+openIntents+` order by p.booking_id limit $3
		on conflict do nothing`, tenant, now, cancelMax)
}

// MoneyInFlight counts what the payment gateway has not completed for a tenant in live mode. Without a connected account nothing can be
// completed, so nothing is counted. q has the worker role.
func MoneyInFlight(ctx context.Context, q pg.Q, tenant ids.Tenant) (domain.InFlight, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.InFlight], nil, `select
		(select count(*)::int from payment_intents p where c.connected and p.tenant_id = $1 and p.livemode and (`+openIntents+` or p.status = 'processing')) as intents,
		(select count(*)::int from refunds r where c.connected and r.tenant_id = $1 and r.livemode and r.leased_until is not null)
			+ (select count(*)::int from automatic_refunds o where c.connected and o.tenant_id = $1 and o.livemode and o.state = 'open' and o.failed_at is null)
			+ (select count(*)::int from booking_settlements s where c.connected and s.tenant_id = $1 and s.livemode) as refunds,
		(select count(*)::int from gateway_events e where c.connected and e.tenant_id = $1 and e.livemode and e.due_at is not null and exists (
			select from payment_intents p where p.tenant_id = e.tenant_id and p.livemode = e.livemode and p.gateway_id = e.intent)) as events
		from (select exists (select from gateway_accounts a where a.tenant_id = $1 and a.livemode and a.disconnected_at is null) as connected) c`, tenant)
}
