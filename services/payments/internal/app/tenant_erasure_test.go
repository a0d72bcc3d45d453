package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/migrations"
)

// An erasure waits for everything that the gateway has not completed in live mode, and open intents become due to be cancelled, so
// that nobody can pay them any more.
func TestErasureWaitsForMoneyInFlight(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	execute := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, id := range []ids.Tenant{tenant, other} {
		for _, live := range []bool{true, false} {
			execute(`insert into gateway_accounts (tenant_id, livemode, id, provider, account, country, publishable_key, secret_key, secret_last4, created_at, updated_at)
				values ($1, $2, '01890000-0000-7000-8000-000000000001', 'stripe', 'acct_1', 'US', 'pk', '', '', now(), now())`, id.UUID(), live)
		}
	}
	intent := func(id ids.Tenant, live bool, status string) {
		t.Helper()
		execute(`insert into payment_intents (tenant_id, livemode, id, gateway_id, account_id, status, amount, currency, booking_id, capture_method, created_at, updated_at, attempt, attempted_at)
			values ($1, $2, gen_random_uuid(), 'pi_' || gen_random_uuid(), '01890000-0000-7000-8000-000000000001', $3, 1, 'USD', gen_random_uuid(), 'automatic', now(), now(), 1, now())`, id.UUID(), live, status)
	}
	erasures := &app.TenantErasure{Worker: db.Worker, Now: time.Now}
	expect := func(want ...string) {
		t.Helper()
		wait, err := erasures.Prepare(t.Context(), tenant)
		if err != nil || (wait == "") != (len(want) == 0) {
			t.Fatalf("waits for %q, %v; want %q", wait, err, want)
		}
		for _, part := range want {
			if !strings.Contains(wait, part) {
				t.Errorf("waits for %q, want %q", wait, part)
			}
		}
	}
	for _, status := range []string{"succeeded", "canceled"} {
		intent(tenant, true, status)
	}
	intent(tenant, false, "requires_action") // no money
	intent(other, true, "requires_action")
	expect()
	open := []string{"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture"}
	for _, status := range append(open, "processing") {
		intent(tenant, true, status)
	}
	execute(`insert into booking_settlements (tenant_id, livemode, booking_id, due_at) values ($1, true, gen_random_uuid(), now())`, tenant.UUID())
	execute(`insert into automatic_refunds (tenant_id, livemode, cause, subject, wanted) values ($1, true, 'late', 'pi_1', 1)`, tenant.UUID())
	execute(`insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, received_at, due_at)
		select tenant_id, livemode, account_id, 'evt_1', 'x', gateway_id, now(), now() from payment_intents where tenant_id = $1 and status = 'processing'`, tenant.UUID())
	expect("payment intents: 5", "refunds: 2", "events: 1")
	var due int
	if err := conn.QueryRow(t.Context(), `select count(*) from lost_bookings where tenant_id = $1 and livemode`, tenant.UUID()).Scan(&due); err != nil || due != len(open) {
		t.Errorf("the intents of %d bookings are cancelled, %v; want %d", due, err, len(open))
	}
	if err := conn.QueryRow(t.Context(), `select count(*) from lost_bookings where tenant_id <> $1 or not livemode`, tenant.UUID()).Scan(&due); err != nil || due != 0 {
		t.Errorf("%d others, %v", due, err)
	}
	execute(`update automatic_refunds set state = 'closed'`)
	expect("refunds: 1")
	execute(fmt.Sprintf(`update gateway_accounts set disconnected_at = now() where tenant_id = '%x' and livemode`, tenant.UUID()))
	expect()
}
