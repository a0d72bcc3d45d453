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
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// TestCreditNotesUseTheirIndexes checks that lists of credit notes, the refunds of an invoice and the quote of a booking are read by
// indexes that find only their rows.
func TestCreditNotesUseTheirIndexes(t *testing.T) {
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
		for _, sql := range []string{
			`insert into credit_notes (tenant_id, livemode, id, seq, number, status, invoice_id, customer_id, booking_id, lines, pricing, currency, subtotal,
				discount, tax, total, refund, refund_amount, returned, refund_parts, created_at, updated_at)
			select tenant_id, livemode, id, seq, 'CN-' || seq, 'issued', id, customer_id, booking_id, '[]', 'null', 'USD', 1, 0, 0, 1, 'none', 0, 0, 'null',
				created_at, updated_at from invoices where tenant_id = '%[1]x'`,
			`insert into credit_note_refunds (tenant_id, livemode, charge_id, credit_note_id, invoice_id, amount)
			select tenant_id, livemode, 'pi_' || id, id, invoice_id, 1 from credit_notes where tenant_id = '%[1]x'`,
		} {
			if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, one.UUID())); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
	var invoice domain.InvoiceID
	var customer domain.CustomerID
	var booking domain.BookingID
	var now time.Time
	err = conn.QueryRow(t.Context(), `select id, customer_id, booking_id, now() from invoices where tenant_id = $1 and seq = 760`, tenant).
		Scan(&invoice, &customer, &booking, &now)
	if err != nil {
		t.Fatal(err)
	}
	list := func(f store.CreditNoteFilter, r page.Request) func(context.Context, pg.Q) (int, error) {
		r.Limit = page.DefaultLimit
		return func(ctx context.Context, q pg.Q) (int, error) {
			rows, err := store.CreditNotes(ctx, q, f, r)
			return len(rows.Items), err
		}
	}
	for name, tc := range map[string]struct {
		read  func(ctx context.Context, q pg.Q) (int, error)
		want  int
		index string
	}{
		"all":         {list(store.CreditNoteFilter{}, page.Request{}), page.DefaultLimit, "credit_notes_created"},
		"next page":   {list(store.CreditNoteFilter{}, page.Request{After: &page.Position{At: now.Add(-time.Hour)}}), page.DefaultLimit, "credit_notes_created"},
		"sync":        {list(store.CreditNoteFilter{}, page.Request{Updated: true}), page.DefaultLimit, "credit_notes_updated"},
		"of invoice":  {list(store.CreditNoteFilter{Invoice: &invoice}, page.Request{}), 1, "credit_notes_invoice"},
		"of customer": {list(store.CreditNoteFilter{Customer: &customer}, page.Request{}), 20, "credit_notes_customer"},
		"of booking":  {list(store.CreditNoteFilter{Booking: &booking}, page.Request{}), 20, "credit_notes_booking"},
		"refunds": {func(ctx context.Context, q pg.Q) (int, error) {
			byCharge, err := store.NoteRefunds(ctx, q, invoice)
			return len(byCharge), err
		}, 1, "credit_note_refunds_invoice"},
		"balance": {func(ctx context.Context, q pg.Q) (int, error) {
			b, err := store.Balance(ctx, q, booking)
			return len(b.Deducted), err
		}, 20, "quotes_booking"},
	} {
		for _, mode := range pgtest.PlanModes {
			got := 0
			plan := pgtest.Explain(t, pgtest.CtxOf(t, tenant, caller.Test), db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
				got, err = tc.read(ctx, tx)
				return err
			})
			if got != tc.want || !strings.Contains(plan.String(), tc.index) || strings.Contains(plan.String(), "Seq Scan") || int(plan.Largest()) > page.DefaultLimit+1 {
				t.Errorf("%s, %s: found %d, want %d by %s; a step gave %d rows\n%s", name, mode, got, tc.want, tc.index, int(plan.Largest()), plan)
			}
		}
	}
}
