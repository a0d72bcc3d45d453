package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

// fillLedger adds one movement and one dispute to each of the intents of fillRefunds.
func fillLedger(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`insert into ledger_entries (tenant_id, livemode, account_id, movement, ledger_account, currency, amount, kind, object, intent_id, moved_at)
		select p.tenant_id, p.livemode, p.account_id, 'txn_' || p.gateway_id, s.account, 'USD', s.amount, 'charge', 'ch_' || p.gateway_id, p.id, now()
		from payment_intents p, (values ('gateway_balance', 10), ('payments', -10)) s (account, amount) where p.tenant_id = '%[1]x'`,
		`insert into disputes (tenant_id, livemode, id, account_id, intent_id, charge, amount, currency, reason, status, opened_at, created_at, updated_at)
		select p.tenant_id, p.livemode, 'dp_' || p.gateway_id, p.account_id, p.id, 'ch_1', 10, 'USD', 'general', 'lost', now(), now(), now()
		from payment_intents p where p.tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID())); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// filled returns a database with two tenants of 5,000 intents each, and the first of the tenants.
func filled(t *testing.T, fill ...func(t *testing.T, conn *pgx.Conn, tenant ids.Tenant)) (*pgtest.DB, *pgx.Conn, ids.Tenant) {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	for _, tenant := range tenants {
		for _, f := range fill {
			f(t, conn, tenant)
		}
	}
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
	return db, conn, tenants[0]
}

func TestLedgerUsesItsIndexes(t *testing.T) {
	t.Parallel()
	db, conn, tenant := filled(t, fillRefunds, fillLedger)
	var intent domain.IntentID
	if err := conn.QueryRow(t.Context(), `select id from payment_intents where tenant_id = $1 and gateway_id = 'pi_7'`, tenant).Scan(&intent); err != nil {
		t.Fatal(err)
	}
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	var entries []store.Entry
	plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
		entries, err = store.LedgerOfIntent(ctx, tx, intent, 10)
		return err
	})
	if len(entries) != 2 || !strings.Contains(plan.String(), "ledger_entries_intent") || strings.Contains(plan.String(), "Seq Scan") {
		t.Errorf("%v\n%s", entries, plan)
	}
	var disputes map[string]domain.Dispute
	plan = pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
		disputes, err = store.DisputesOfIntent(ctx, tx, intent)
		return err
	})
	if len(disputes) != 1 || !strings.Contains(plan.String(), "disputes_intent") || strings.Contains(plan.String(), "Seq Scan") {
		t.Errorf("%v\n%s", disputes, plan)
	}
}

// TestAPageIsComparedByIndexes checks that a page of the gateway is compared in one statement, which reads each row by an index.
func TestAPageIsComparedByIndexes(t *testing.T) {
	t.Parallel()
	db, conn, tenant := filled(t, fillRefunds, fillLedger)
	var account domain.AccountID
	if err := conn.QueryRow(t.Context(), `select id from gateway_accounts where tenant_id = $1`, tenant).Scan(&account); err != nil {
		t.Fatal(err)
	}
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	for stage, prefix := range map[domain.Stage]string{domain.StageIntents: "", domain.StageRefunds: "re_", domain.StageDisputes: "dp_"} {
		var list []domain.Listed
		for n := range 100 {
			intent := fmt.Sprintf("pi_%d", n+1)
			list = append(list, domain.Listed{ID: prefix + intent, Intent: domain.GatewayID(intent), Movements: "txn_" + intent + ",txn_none"})
		}
		rows, err := conn.Query(t.Context(), `select p.id, a.id from payment_intents p join refund_allocations a on a.intent_id = p.id
			where p.tenant_id = $1 order by substr(p.gateway_id, 4)::int limit 100`, tenant)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; rows.Next(); i++ {
			var intent domain.IntentID
			var part domain.AllocationID
			if err := rows.Scan(&intent, &part); err != nil {
				t.Fatal(err)
			}
			if list[i].Row = intent.String(); stage == domain.StageRefunds {
				list[i].Row = part.String()
			}
		}
		var got []domain.Known
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
			got, err = store.KnownOf(ctx, tx, account, stage, list)
			return err
		})
		if len(got) != 100 || plan.Statements() != 1 || strings.Contains(plan.String(), "Seq Scan") {
			t.Fatalf("%s: %d rows, %d statements\n%s", stage, len(got), plan.Statements(), plan)
		}
		for i, k := range got {
			if k.Intent.ID.IsZero() || k.Intent.Received != 10 || k.MissingMovements != 1 || k.Due || k.Elsewhere {
				t.Fatalf("%s %d: %+v", stage, i, k)
			}
			if (stage == domain.StageIntents) != (k.RowStatus != "") || (stage == domain.StageRefunds) != (k.PartStatus != "") ||
				(stage == domain.StageDisputes) != (k.DisputeStatus != "") {
				t.Fatalf("%s %d: %+v", stage, i, k)
			}
		}
	}
}

// TestSweepUsesItsIndex checks that the sweep of old events finds them by its index.
func TestSweepUsesItsIndex(t *testing.T) {
	t.Parallel()
	db, conn, _ := filled(t, fillRefunds)
	for _, sql := range []string{
		`insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, received_at, due_at)
		select a.tenant_id, a.livemode, a.id, 'evt_' || n, 'x', 'pi_' || n, now() - n * interval '1 minute', case when n % 1000 = 0 then now() end
		from gateway_accounts a, generate_series(1, 20000) n`,
		`analyze`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		plan := pgtest.NewExplained(t, tx)
		_, err := store.SweepEvents(ctx, plan, time.Now().Add(-13*24*time.Hour), 1000)
		if !strings.Contains(plan.String(), "gateway_events_done") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s", plan)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTakeEventsUsesItsIndex checks that the events about an intent are found by an index of due events, however many events about
// others are due, and that no more are taken than the caller requests.
func TestTakeEventsUsesItsIndex(t *testing.T) {
	t.Parallel()
	db, conn, tenant := filled(t, fillRefunds)
	for _, sql := range []string{
		`insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, received_at, due_at)
		select a.tenant_id, a.livemode, a.id, 'evt_' || n, 'x', 'pi_' || n % 1000, now(), now()
		from gateway_accounts a, generate_series(1, 20000) n`,
		`analyze`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var due store.EventDue
	if err := conn.QueryRow(t.Context(), `select id from gateway_accounts where tenant_id = $1`, tenant).Scan(&due.AccountID); err != nil {
		t.Fatal(err)
	}
	due.Intent = "pi_7"
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	for _, want := range []int{15, 5, 0} {
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			plan, now := pgtest.NewExplained(t, tx), time.Now().Add(time.Minute)
			taken, err := store.Accounts{}.TakeEvents(ctx, plan, due, now, now.Add(time.Hour), 15)
			if strings.Count(plan.String(), "gateway_events_of_intent") != 1 || strings.Contains(plan.String(), "Seq Scan") {
				t.Errorf("%s", plan)
			}
			if len(taken.Events) != want || taken.Intent == nil || taken.Intent.GatewayID != "pi_7" {
				t.Errorf("%d events, want %d, of %+v", len(taken.Events), want, taken.Intent)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
