package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/usage"

	"holdfast.dev/services/payments/internal/domain"
)

// Volumes returns the movements of money that the ledger recorded from one time until before another, by currency. A movement counts
// when it was recorded, not when the gateway made it: the ledger only grows, so the past does not change.
func Volumes(ctx context.Context, q pg.Q, from, to time.Time) ([]domain.Volume, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Volume], `
		select l.currency,
			coalesce(sum(-l.amount) filter (where l.kind in ('charge', 'charge_failed')), 0)::bigint as charged,
			coalesce(sum(l.amount) filter (where l.kind in ('refund', 'refund_failed')), 0)::bigint as refunded,
			coalesce(sum(l.amount) filter (where l.kind in ('dispute', 'dispute_reversed')), 0)::bigint as disputed
		from ledger_entries l
		where l.tenant_id = @tenant and l.livemode = @live and l.ledger_account = 'payments' and l.recorded_at >= @from and l.recorded_at < @to
		group by l.currency order by l.currency`, pg.Args{"from": from, "to": to})
}

// Waiting are the kinds of background work of this service.
var Waiting = []usage.Waiting{
	{Kind: "gateway_event", SQL: `select received_at as at from gateway_events where tenant_id = @tenant and livemode = @live and due_at is not null`},
	{Kind: "payment", SQL: `select begun_at as at from payment_intents where tenant_id = @tenant and livemode = @live and leased_until is not null`},
	{Kind: "refund", SQL: `select created_at as at from refunds where tenant_id = @tenant and livemode = @live and leased_until is not null`},
	{Kind: "owed_refund", SQL: `select created_at as at from automatic_refunds where tenant_id = @tenant and livemode = @live and state = 'open' order by created_at`},
	{Kind: "reconciliation", SQL: `select started_at as at from gateway_reconciliations where tenant_id = @tenant and livemode = @live and started_at is not null`},
}
