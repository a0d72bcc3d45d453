package store_test

import (
	"testing"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/migrations"
)

const u = `'01890000-0000-7000-8000-000000000001'`

// rows are a row of each table, after those that it references.
var rows = []pgtest.Row{
	{"endpoints", "id, url, event_types, max_in_flight, max_per_second, created_at, updated_at", u + ", 'u', '{*}', 1, 1, now(), now()"},
	{"endpoint_secrets", "endpoint_id, id, sealed", u + ", " + u + ", ''"},
	{"endpoint_queues", "endpoint_id", u},
	{"queue", "endpoint_id, due_at, delivery_id, event_id", u + ", now(), " + u + ", " + u},
	{"wakeups", "endpoint_id", u},
	{"events", "id, type, object_id, body, updated_at", "uuid_v7(now()), 't', 'o', '', now()"},
	{"erasures", "object_id, expires_at", "'o', now()"},
	{"tenant_states", "status, version", "'active', 1"},
	{"deliveries", "endpoint_id, id, event_id, event_type, updated_at", u + ", uuid_v7(now()), " + u + ", 't', now()"},
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Isolation(t, migrations.FS, rows, "endpoint_queues_ready", "wakeups_order", "erasures_expiry")
}
