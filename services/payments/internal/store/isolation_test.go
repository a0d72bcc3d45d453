package store_test

import (
	"testing"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/migrations"
)

const u = `'01890000-0000-7000-8000-000000000001'`

// rows are a row of each table, after those that it references.
var rows = []pgtest.Row{
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
	{
		"ledger_entries", "account_id, movement, ledger_account, currency, amount, kind, object, intent_id, moved_at",
		u + ", 'txn_1', 'payments', 'USD', 0, 'charge', 'ch_1', (select id from payment_intents limit 1), now()",
	},
	{
		"disputes", "id, account_id, intent_id, charge, amount, currency, reason, status, opened_at, created_at, updated_at",
		"'dp_1', " + u + ", (select id from payment_intents limit 1), 'ch_1', 1, 'USD', 'general', 'needs_response', now(), now(), now()",
	},
	{"failed_charges", "intent_id, id", "(select id from payment_intents limit 1), 'ch_1'"},
	{"payment_intent_metadata", "key, value, intent_id", "'k', 'v', (select id from payment_intents limit 1)"},
	{"refund_metadata", "key, value, refund_id", "'k', 'v', " + u},
	{"gateway_events", "account_id, id, type, received_at", u + ", 'evt_1', 'x', now()"},
	{"gateway_reconciliations", "account_id, due_at, finished_at", u + ", now(), now()"},
	{"lost_bookings", "booking_id, due_at", "gen_random_uuid(), now()"},
	{"booking_settlements", "booking_id, due_at", "gen_random_uuid(), now()"},
	{"money_accounts", "id, currency, kind", u + ", 'USD', 'booking'"},
	{
		"money_entries", "account_id, currency, version, kind, method, amount, object, at",
		u + ", 'USD', 1, 'received', 'cash', 1, 'pay_1', now()",
	},
	{"automatic_refunds", "cause, subject, wanted", "'late', 'pi_1', 1"},
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Isolation(t, migrations.FS, rows, "booking_settlements_due", "payment_intents_leased", "refunds_leased", "gateway_events_due", "gateway_events_done", "gateway_reconciliations_due",
		"lost_bookings_due", "gateway_accounts_id", "payment_intents_refused", "refunds_refused", "automatic_refunds_due",
		"automatic_refunds_failed")
}
