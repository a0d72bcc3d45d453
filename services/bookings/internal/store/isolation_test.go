package store_test

import (
	"testing"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/migrations"
)

const u = `'01890000-0000-7000-8000-000000000001'`

// rows are a row of each table, after those that it references.
var rows = []pgtest.Row{
	{"services", "id, name", u + ", 's'"},
	{"units", "id, name", u + ", 'u'"},
	{"unit_services", "unit_id, service_id", u + ", " + u},
	{"packages", "id, service_id, name, currency, base_price", u + ", " + u + ", 'p', 'USD', 1"},
	{"package_units", "package_id, unit_id", u + ", " + u},
	{"holiday_rules", "id, name, date_from, date_to, multiplier_bps", u + ", 'h', '2030-01-01', '2030-01-01', 1"},
	{"closures", "id, name, starts_at, ends_at, timezone", u + ", 'c', '2030-02-01', '2030-02-02', 'UTC'"},
	{"customers", "id, name, version", u + ", 'c', 1"},
	{
		"bookings", "id, number, status, unit_id, event_day, timezone, currency, total, gross, deposit, paid, refunded, payment_status",
		u + ", 'B-1', 'pending', " + u + ", '2030-01-01', 'UTC', 'USD', 0, 0, 0, 0, 0, 'unpaid'",
	},
	{"booking_metadata", "key, value, booking_id", "'k', 'v', " + u},
	{"unit_claims", "unit_id, booking_id, starts_at, ends_at", u + ", " + u + ", '2030-01-01', '2030-01-02'"},
	{"booking_counters", "next", "1"},
	{"booking_invoices", "invoice_id, version", "'inv_1', 1"},
	{"booking_payments", "payment_id, booking_id, invoice_id, amount, currency", "'pay_1', " + u + ", 'inv_1', 1, 'USD'"},
	{"calendar_feeds", "id, name, include_details, timezone, hash, created_at, updated_at", u + ", 'f', false, 'UTC', uuid_send(gen_random_uuid()), now(), now()"},
	{"tenant_states", "status, version", "'active', 1"},
	{"test_clocks", "frozen_at, version", "null, 1"},
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Isolation(t, migrations.FS, rows, "bookings_due", "calendar_feeds_hash_key")
}
