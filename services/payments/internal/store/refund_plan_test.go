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

// fillRefunds gives the tenant 5,000 intents of 1,000 bookings, each with a refund.
func fillRefunds(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`insert into gateway_accounts (tenant_id, livemode, id, provider, account, country, publishable_key, secret_key, secret_last4, created_at, updated_at)
		values ('%[1]x', false, gen_random_uuid(), 'stripe', 'acct_1', 'US', '', '', '', now(), now())`,
		`with b as (select array_agg(gen_random_uuid()) ids from generate_series(1, 1000))
		insert into payment_intents (tenant_id, livemode, id, gateway_id, account_id, status, amount, currency, received, refund_reserved, booking_id,
			capture_method, created_at, updated_at, attempt, attempted_at)
		select '%[1]x', false, gen_random_uuid(), 'pi_' || n, a.id, 'succeeded', 10, 'USD', 10, 1, b.ids[1 + n %% 1000], 'automatic',
			now() - n * interval '1 minute', now() - n * interval '1 minute', 1, now()
		from gateway_accounts a, b, generate_series(1, 5000) n where a.tenant_id = '%[1]x'`,
		`insert into refunds (tenant_id, livemode, id, status, shown, amount, currency, reason, booking_id, created_at, updated_at)
		select tenant_id, livemode, id, case when gateway_id like '%%77' then 'pending' else 'succeeded' end, true, 1, 'USD', 'duplicate', booking_id,
			created_at, updated_at from payment_intents where tenant_id = '%[1]x'`,
		`insert into refund_allocations (tenant_id, livemode, refund_id, position, id, intent_id, amount, status, gateway_id, attempt, attempted_at)
		select tenant_id, livemode, id, 0, gen_random_uuid(), id, 1, 'succeeded', 're_' || gateway_id, 1, now()
		from payment_intents where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID())); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// explained is a reader that keeps the plan of each statement.
type explained struct {
	pg.Q

	plan *strings.Builder
}

func (e explained) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	lines, err := pg.Many(ctx, e.Q, pgx.RowTo[string], "explain (analyze, costs off, timing off) "+sql, args...)
	if err != nil {
		return nil, err
	}
	e.plan.WriteString(strings.Join(lines, "\n"))
	return e.Q.Query(ctx, sql, args...)
}

func TestRefundListsUseTheirIndexes(t *testing.T) {
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
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
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
		"booking": {filter: store.RefundFilter{Booking: &booking}, index: "refunds_booking", rows: 5},
		"intent":  {filter: store.RefundFilter{Intent: "pi_7"}, index: "refund_allocations_intent", rows: 1},
	} {
		c.req.Limit = 25
		plan := &strings.Builder{}
		got, err := store.Refunds(ctx, explained{c.req.Reader(ctx, db.App), plan}, c.filter, c.req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Items) != c.rows || !strings.Contains(plan.String(), c.index) || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s: %d rows\n%s", name, len(got.Items), plan)
		}
	}
}
