package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

// fillRefunds adds 5,000 intents of 1,000 bookings, each with a refund, to the tenant.
func fillRefunds(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`insert into gateway_accounts (tenant_id, livemode, id, provider, account, country, publishable_key, secret_key, secret_last4, created_at, updated_at)
		values ('%[1]x', false, gen_random_uuid(), 'stripe', 'acct_1', 'US', '', '', '', now(), now())`,
		`with b as (select array_agg(gen_random_uuid()) ids from generate_series(1, 1000))
		insert into payment_intents (tenant_id, livemode, id, gateway_id, account_id, status, amount, currency, received, refund_reserved, booking_id, customer_id,
			capture_method, created_at, updated_at, attempt, attempted_at)
		select '%[1]x', false, gen_random_uuid(), 'pi_' || n, a.id, 'succeeded', 10, 'USD', 10, 1, b.ids[1 + n %% 1000], b.ids[1 + n %% 1000],
			'automatic',
			now() - n * interval '1 minute', now() - n * interval '1 minute', 1, now()
		from gateway_accounts a, b, generate_series(1, 5000) n where a.tenant_id = '%[1]x'`,
		`insert into refunds (tenant_id, livemode, id, status, shown, amount, currency, reason, booking_id, created_at, updated_at)
		select tenant_id, livemode, id, case when gateway_id like '%%77' then 'pending' else 'succeeded' end, true, 1, 'USD', 'duplicate', booking_id,
			created_at, updated_at from payment_intents where tenant_id = '%[1]x'`,
		`insert into refund_allocations (tenant_id, livemode, refund_id, position, id, intent_id, amount, status, gateway_id, attempt, attempted_at)
		select tenant_id, livemode, id, 0, gen_random_uuid(), id, 1, 'succeeded', 're_' || gateway_id, 1, now()
		from payment_intents where tenant_id = '%[1]x'`,
		`insert into payment_intent_metadata (tenant_id, livemode, key, value, intent_id)
		select tenant_id, livemode, k, v, id from payment_intents, lateral (values ('every', 'one'), ('order', substring(gateway_id from 4))) m (k, v)
		where tenant_id = '%[1]x'`,
		`insert into refund_metadata (tenant_id, livemode, key, value, refund_id)
		select tenant_id, livemode, key, value, intent_id from payment_intent_metadata where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID())); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func TestListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fillRefunds(t, conn, tenant)
	fillRefunds(t, conn, ids.New[ids.TenantPrefix]())
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
	var booking domain.BookingID
	if err := conn.QueryRow(t.Context(), `select booking_id from payment_intents where tenant_id = $1 and gateway_id = 'pi_7'`, tenant).Scan(&booking); err != nil {
		t.Fatal(err)
	}
	ctx, customer := pgtest.CtxOf(t, tenant, caller.Test), ids.FromUUID[ids.CustomerPrefix](booking.UUID())
	for name, c := range map[string]struct {
		filter store.RefundFilter
		req    page.Request
		index  string
		rows   int
	}{
		"all":     {index: "refunds_created", rows: 25},
		"sync":    {req: page.Request{Updated: true}, index: "refunds_updated", rows: 25},
		"a state": {filter: store.RefundFilter{Status: []domain.RefundStatus{domain.RefundPending}}, index: "refunds_status", rows: 25},
		"states": {
			filter: store.RefundFilter{Status: []domain.RefundStatus{domain.RefundPending, domain.RefundFailed}}, index: "refunds_status", rows: 25,
		},
		"booking":  {filter: store.RefundFilter{Booking: &booking}, index: "refunds_booking", rows: 5},
		"intent":   {filter: store.RefundFilter{Intent: "pi_7"}, index: "refund_allocations_intent", rows: 1},
		"customer": {filter: store.RefundFilter{Customer: &customer}, index: "payment_intents_of_customer", rows: 5},
		"pair":     {filter: store.RefundFilter{Metadata: map[string]string{"order": "77"}}, index: "refund_metadata_pkey", rows: 1},
		"common":   {filter: store.RefundFilter{Metadata: map[string]string{"every": "one"}}, index: "refund_metadata_pkey", rows: 25},
		"common pair of a state": {
			filter: store.RefundFilter{Metadata: map[string]string{"every": "one"}, Status: []domain.RefundStatus{domain.RefundPending}},
			index:  "refund_metadata_pkey", rows: 25,
		},
	} {
		c.req.Limit = 25
		rows := 0
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
			got, err := store.Refunds(ctx, tx, c.filter, c.req)
			rows = len(got.Items)
			return err
		})
		if rows != c.rows || !strings.Contains(plan.String(), c.index) || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s: %d rows\n%s", name, rows, plan)
		}
	}
	for name, c := range map[string]struct {
		filter store.IntentFilter
		req    page.Request
		index  string
		rows   int
	}{
		"all":      {index: "payment_intents_created", rows: 25},
		"sync":     {req: page.Request{Updated: true}, index: "payment_intents_updated", rows: 25},
		"a state":  {filter: store.IntentFilter{Status: []domain.Status{domain.Succeeded}}, index: "payment_intents_", rows: 25},
		"booking":  {filter: store.IntentFilter{Booking: &booking}, index: "payment_intents_booking", rows: 5},
		"customer": {filter: store.IntentFilter{Customer: &customer}, index: "payment_intents_of_customer", rows: 5},
		"pair":     {filter: store.IntentFilter{Metadata: map[string]string{"order": "77"}}, index: "payment_intent_metadata_pkey", rows: 1},
		"pairs":    {filter: store.IntentFilter{Metadata: map[string]string{"order": "77", "every": "one"}}, index: "payment_intent_metadata_pkey", rows: 1},
		"common":   {filter: store.IntentFilter{Metadata: map[string]string{"every": "one"}}, index: "payment_intent_metadata_pkey", rows: 25},
		"common pair of a booking": {
			filter: store.IntentFilter{Metadata: map[string]string{"every": "one"}, Booking: &booking, Status: []domain.Status{domain.Succeeded, domain.Canceled}},
			index:  "payment_intent_metadata_pkey", rows: 5,
		},
	} {
		c.req.Limit = 25
		rows := 0
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
			got, err := store.Intents(ctx, tx, c.filter, c.req)
			rows = len(got.Items)
			return err
		})
		if rows != c.rows || !strings.Contains(plan.String(), c.index) || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("intents, %s: %d rows\n%s", name, rows, plan)
		}
	}
}
