package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

// TestMoneyAccountUsesItsIndexes checks that an account is read and decided about through its key, with the entries in one statement.
func TestMoneyAccountUsesItsIndexes(t *testing.T) {
	t.Parallel()
	db, conn, tenant := filled(t, fillRefunds)
	var booking domain.BookingID
	if err := conn.QueryRow(t.Context(), `select booking_id from payment_intents where tenant_id = $1 and gateway_id = 'pi_7'`, tenant).Scan(&booking); err != nil {
		t.Fatal(err)
	}
	ctx, key, since := pgtest.CtxOf(t, tenant, caller.Test), domain.BookingMoney(booking, "USD"), int64(2)
	for _, mode := range pgtest.PlanModes {
		var got domain.MoneyAccount
		plan := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
			got, err = store.MoneyAccount(ctx, tx, key, &since)
			return err
		})
		if got.Received != 50 || got.Held != 5 || len(got.Entries) != 4 || !strings.Contains(plan.String(), "money_accounts_pkey") ||
			!strings.Contains(plan.String(), "money_entries_pkey") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%+v\n%s", got, plan)
		}
		for name, run := range map[string]func(ctx context.Context, tx pg.Tx) error{
			"publish": func(ctx context.Context, tx pg.Tx) error {
				_, _, err := store.UnpublishedMoney(ctx, tx, key)
				return err
			},
			"object": func(ctx context.Context, tx pg.Tx) error {
				_, _, err := store.MoneyObjectForUpdate(ctx, tx, key, "pay_1")
				return err
			},
			"last return": func(ctx context.Context, tx pg.Tx) error { _, err := store.LastReturn(ctx, tx, key); return err },
		} {
			plan := pgtest.Explain(t, ctx, db, mode, run)
			if strings.Contains(plan.String(), "Seq Scan") {
				t.Errorf("%s\n%s", name, plan)
			}
		}
	}
}

// TestMoneyIsBacked checks the walls that remain if a decision is wrong: nothing is returned that was not received, and no entry changes.
func TestMoneyIsBacked(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx, key := pgtest.Ctx(t, caller.Test), domain.BookingMoney(ids.New[ids.BookingPrefix](), "USD")
	move := func(m domain.MoneyMove) error {
		return db.App.Tx(ctx, func(_ context.Context, tx pg.Tx) error {
			store.MoveMoney(tx, key, m)
			return nil
		})
	}
	cash := domain.MoneyMove{Kind: domain.EntryReceived, Method: domain.MethodCash, Minor: 10, Object: "pay_1"}
	if err := move(cash); err != nil {
		t.Fatal(err)
	}
	if err := move(cash); pg.ConstraintName(err) != "money_entries_object" {
		t.Errorf("recorded twice: %v", err)
	}
	back := domain.MoneyMove{Kind: domain.EntryReturned, Method: domain.MethodCash, Minor: 11, Object: "rf_1"}
	reversal := domain.MoneyMove{Kind: domain.EntryReceivedReversed, Method: domain.MethodCash, Minor: 11, Object: "pay_1"}
	for _, m := range []domain.MoneyMove{back, reversal} {
		if err := move(m); !errors.Is(err, domain.ErrNothingToRefund) {
			t.Errorf("%s more than received: %v", m.Kind, err)
		}
	}
	for _, sql := range []string{`update money_entries set amount = 1`, `delete from money_entries`, `truncate money_entries`, `delete from money_accounts`} {
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { _, err := tx.Exec(ctx, sql); return err })
		if pg.Code(err) != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestMoneyOfIntents checks that the accounts follow the payments.
func TestMoneyOfIntents(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for range 2 {
		fillRefunds(t, conn, ids.New[ids.TenantPrefix]())
	}
	exec(`update payment_intents set refunded = 1, disputed = gateway_id like '%3' where gateway_id like any(array['%3', '%5'])`)
	exec(`update payment_intents set refunded = 7, refunded_elsewhere = 6 where gateway_id like '%7'`)
	check := func(when string) {
		t.Helper()
		var accounts, differ int
		if err := conn.QueryRow(t.Context(), `select (select count(*) from money_accounts), (select count(*) from (`+store.UnbalancedMoney+`) d)`).
			Scan(&accounts, &differ); err != nil || accounts < 2000 || differ != 0 {
			t.Fatalf("%s: %d accounts, %d differ (%v)", when, accounts, differ, err)
		}
	}
	check("filled")
	exec(`update payment_intents set received = received + 5, amount = amount + 5 where gateway_id like '%2'`)
	exec(`update payment_intents set refund_reserved = refund_reserved + 2 where gateway_id like '%4'`)
	exec(`update payment_intents set refunded = refunded + 3, refunded_elsewhere = refunded_elsewhere + 1, disputed = not disputed where gateway_id like '%3'`)
	check("followed")
}
