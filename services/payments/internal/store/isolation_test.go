package store_test

import (
	"testing"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/migrations"
)

func TestIsolation(t *testing.T) {
	t.Parallel()
	const u = `'01890000-0000-7000-8000-000000000001'`
	pgtest.Isolation(t, migrations.FS, []pgtest.Row{
		{
			"gateway_accounts", "id, provider, account, country, publishable_key, secret_key, secret_last4, created_at, updated_at",
			u + ", 'stripe', 'acct_1', 'US', 'pk', '', '', now(), now()",
		},
		{"gateway_webhook_secrets", "account_id, id, sealed, last4", u + ", gen_random_uuid(), '', ''"},
		{"bookings", "id, status, version", u + ", 'pending', 1"},
		{
			"payment_intents", "id, account_id, status, amount, currency, booking_id, capture_method, created_at, updated_at, attempt, attempted_at",
			"gen_random_uuid(), " + u + ", 'creating', 1, 'USD', " + u + ", 'automatic', now(), now(), 1, now()",
		},
		{
			"refunds", "id, status, amount, currency, reason, booking_id, created_at, updated_at",
			u + ", 'creating', 1, 'USD', 'duplicate', " + u + ", now(), now()",
		},
		{
			"refund_allocations", "refund_id, position, id, intent_id, amount, status, attempt, attempted_at",
			u + ", 0, gen_random_uuid(), (select id from payment_intents limit 1), 1, 'creating', 1, now()",
		},
		{"gateway_events", "account_id, id, type, received_at", u + ", 'evt_1', 'x', now()"},
		{"lost_bookings", "booking_id, due_at", "gen_random_uuid(), now()"},
	}, "payment_intents_leased", "refunds_leased", "gateway_events_due", "lost_bookings_due", "gateway_accounts_id")
}
