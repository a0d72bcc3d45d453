package store_test

import (
	"testing"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/migrations"
)

// rows are a row of each table, after those that it references.
var rows = []pgtest.Row{
	{
		"request_logs", "id, status, status_class, method, route, path, query_names, credential_id, credential_type, duration_ms, replayed",
		"(select uuid_floor(now())), 200, 2, 'POST', '/bookings', '/bookings', '', 'key_1', 'api_key', 1, false",
	},
	{"request_log_counts", "day, rows", "current_date, 1"},
	{"request_counts", "day, class, requests", "current_date, 'read', 1"},
	{"request_counts_sealed", "through", "current_date"},
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Isolation(t, migrations.FS, rows, "request_log_counts_day", "request_counts_day")
}
