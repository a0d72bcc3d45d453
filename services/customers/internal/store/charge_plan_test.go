package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// fillCharges adds 20 charges to each booking of fillInvoices. Each charge has paid an invoice of the booking. A part of one of
// them is unallocated.
func fillCharges(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`insert into charges (tenant_id, livemode, id, booking_id, amount, unapplied, currency)
		select tenant_id, livemode, 'pi_' || id, booking_id, 3, case when seq <= 1000 then 2 else 0 end, 'USD' from invoices where tenant_id = '%[1]x'`,
		`insert into money_accounts (tenant_id, livemode, id, currency, returned, version)
		select distinct tenant_id, livemode, booking_id, 'USD', 5, 7 from invoices where tenant_id = '%[1]x'`,
		`update invoice_payments set source = 'gateway', charge_id = 'pi_' || invoice_id, charge_part = 1 where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID())); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// TestMoneyOfABookingUsesItsIndexes checks that the payments of a booking are read by indexes that find only the booking's rows,
// however many rows the tenant has.
func TestMoneyOfABookingUsesItsIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	for _, one := range []ids.Tenant{tenant, ids.New[ids.TenantPrefix]()} {
		fillInvoices(t, conn, one)
		fillCharges(t, conn, one)
	}
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
	var invoice domain.InvoiceID
	var booking domain.BookingID
	if err := conn.QueryRow(t.Context(), `select id, booking_id from invoices where tenant_id = $1 and seq = 760`, tenant).Scan(&invoice, &booking); err != nil {
		t.Fatal(err)
	}
	of := domain.AccountRef{Booking: booking, Currency: "USD"}
	for name, tc := range map[string]struct {
		read func(ctx context.Context, q pg.Q) (int, error)
		want int
		by   []string
	}{
		"unallocated charges": {func(ctx context.Context, q pg.Q) (int, error) {
			list, err := store.UnallocatedCharges(ctx, q, of)
			return len(list), err
		}, 1, []string{"charges_unallocated", "invoices_booking", "invoice_payments_pkey"}},
		"payable invoices": {func(ctx context.Context, q pg.Q) (int, error) {
			list, err := store.MoneyInvoices(ctx, q, of, domain.InvoiceID{})
			return len(list), err
		}, 20, []string{"invoices_booking"}},
		"charged invoices": {func(ctx context.Context, q pg.Q) (int, error) {
			list, err := store.ChargedInvoices(ctx, q, of, "pi_"+uuidOf(invoice))
			return len(list), err
		}, 1, []string{"invoices_booking", "invoice_payments_pkey"}},
		"account of an invoice": {func(ctx context.Context, q pg.Q) (int, error) {
			a, err := store.AccountOfInvoice(ctx, q, invoice)
			return int(a.Version), err
		}, 7, []string{"invoices_pkey", "charges_calls", "money_accounts_pkey"}},
		"handed back": {func(ctx context.Context, q pg.Q) (int, error) {
			back, err := store.HandedBack(ctx, q, of)
			return int(back.Sum), err
		}, 5, []string{"invoices_booking", "charges_booking", "money_accounts_pkey", "invoice_payments_pkey"}},
		"dues": {func(ctx context.Context, q pg.Q) (int, error) {
			d, err := store.Dues(ctx, q, of, invoice)
			return int(d.Version), err
		}, 7, []string{"invoices_booking", "invoices_pkey", "money_accounts_pkey"}},
	} {
		for _, mode := range pgtest.PlanModes {
			got := 0
			plan := pgtest.Explain(t, pgtest.CtxOf(t, tenant, caller.Test), db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
				got, err = tc.read(ctx, tx)
				return err
			})
			for _, index := range tc.by {
				if !strings.Contains(plan.String(), index) {
					t.Errorf("%s, %s: want %s\n%s", name, mode, index, plan)
				}
			}
			if got != tc.want || strings.Contains(plan.String(), "Seq Scan") || plan.Largest() > 40 {
				t.Errorf("%s, %s: found %d, want %d; a step gave %d rows\n%s", name, mode, got, tc.want, int(plan.Largest()), plan)
			}
		}
	}
}

// uuidOf returns an id as PostgreSQL prints it.
func uuidOf(id domain.InvoiceID) string {
	u := id.UUID()
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
