package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// The volume of a day is the sum of the movements that the ledger recorded on it, by currency and kind, whenever the gateway made them.
// It is read by an index.
func TestVolumes(t *testing.T) {
	t.Parallel()
	db, conn, tenant := filled(t, fillRefunds, fillLedger)
	insert := `insert into ledger_entries (tenant_id, livemode, account_id, movement, ledger_account, currency, amount, kind, object, intent_id, moved_at, recorded_at)
		select p.tenant_id, p.livemode, p.account_id, $2, s.account, $3, s.sign * $4::bigint, $5, 'ch_1', p.id, '2020-01-01', $6::timestamptz
		from (select * from payment_intents where tenant_id = $1 order by id limit 1) p, (values ('gateway_balance', 1), ('payments', -1)) s (account, sign)`
	for i, m := range []struct {
		currency string
		amount   int64
		kind     string
		at       string
	}{
		{"USD", 1_000_000, "charge", "2026-02-28 23:59:59.999999Z"},
		{"USD", 100, "charge", "2026-03-01 00:00:00Z"},
		{"USD", 50, "charge", "2026-03-01 23:59:59.999999Z"},
		{"USD", -30, "charge_failed", "2026-03-01 12:00:00Z"},
		{"USD", -20, "refund", "2026-03-01 12:00:00Z"},
		{"USD", 5, "refund_failed", "2026-03-01 12:00:00Z"},
		{"EUR", -7, "refund", "2026-03-01 12:00:00Z"}, // in another currency than the charge
		{"JPY", 900, "charge", "2026-03-01 12:00:00Z"},
		{"JPY", -400, "dispute", "2026-03-01 12:00:00Z"},
		{"JPY", 100, "dispute_reversed", "2026-03-01 12:00:00Z"},
		{"USD", 2_000_000, "charge", "2026-03-02 00:00:00Z"},
	} {
		if _, err := conn.Exec(t.Context(), insert, tenant, "txn_day_"+string(rune('a'+i)), m.currency, m.amount, m.kind, m.at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `analyze ledger_entries`); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	read := func(ctx context.Context, from time.Time) (got []domain.Volume) {
		t.Helper()
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
			got, err = store.Volumes(ctx, tx, from, from.AddDate(0, 0, 1))
			return err
		})
		if !strings.Contains(plan.String(), "ledger_entries_recorded") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s", plan)
		}
		return got
	}
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	want := []domain.Volume{{Currency: "EUR", Refunded: 7}, {Currency: "JPY", Charged: 900, Disputed: 300}, {Currency: "USD", Charged: 120, Refunded: 15}}
	if got := read(ctx, from); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := read(ctx, from.AddDate(0, 0, 5)); len(got) != 0 {
		t.Errorf("a day without movements: %+v", got)
	}
	if got := read(pgtest.CtxOf(t, tenant, caller.Live), from); len(got) != 0 {
		t.Errorf("the other mode: %+v", got)
	}
}
