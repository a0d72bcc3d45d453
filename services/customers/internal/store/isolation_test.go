package store_test

import (
	"context"
	"testing"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/migrations"
)

const u = `'01890000-0000-7000-8000-000000000001'`

// rows are a row of each table, after those that it references.
var rows = []pgtest.Row{
	{"customers", "id, first_name, email, email_lower, version, created_at, updated_at", u + ", 'a', 'b', 'b', 1, now(), now()"},
	{"customer_words", "word, customer_id", "'w', gen_random_uuid()"},
	{"customer_metadata", "key, value, customer_id", "'k', 'v', gen_random_uuid()"},
	{"catalogue_items", "id, version", "'srv_1', 1"},
	{"bookings", "id, status, currency, total, version", u + ", 'pending', 'USD', 1, 1"},
	{
		"invoices", "id, status, kind, customer_id, lines, currency, subtotal, discount, tax, total, created_at, updated_at",
		u + ", 'draft', 'full', " + u + ", '[]', 'USD', 1, 0, 0, 1, now(), now()",
	},
	{
		"invoice_payments", "invoice_id, position, id, amount, method, source, paid_at",
		u + ", 1, " + u + ", 1, 'cash', 'manual', now()",
	},
	{"invoice_metadata", "key, value, invoice_id", "'k', 'v', " + u},
	{"invoice_counters", "next", "1"},
	{
		"credit_notes", "id, seq, number, status, invoice_id, customer_id, lines, pricing, currency, subtotal, discount, tax, total, refund, refund_amount, returned, refund_parts, created_at, updated_at",
		u + ", 1, 'CN-1', 'issued', " + u + ", " + u + ", '[]', 'null', 'USD', 1, 0, 0, 1, 'none', 0, 0, 'null', now(), now()",
	},
	{"credit_note_refunds", "charge_id, credit_note_id, invoice_id, amount", "'pi_1', " + u + ", " + u + ", 1"},
	{"credit_note_counters", "next", "1"},
	{"leads", "id, status, first_name, created_at, updated_at", "gen_random_uuid(), 'new', 'a', now(), now()"},
	{"lead_words", "word, lead_id", "'w', gen_random_uuid()"},
	{"lead_metadata", "key, value, lead_id", "'k', 'v', gen_random_uuid()"},
	{
		"quotes", "id, number, status, customer_id, timezone, line_items, currency, subtotal, discount, tax, total, deposit, created_at, updated_at",
		u + ", 'Q-1', 'draft', " + u + ", 'UTC', '[]', 'USD', 0, 0, 0, 0, 0, now(), now()",
	},
	{"quote_metadata", "key, value, quote_id", "'k', 'v', " + u},
	{"quote_counters", "next", "1"},
	{"test_clocks", "version", "1"},
	{"money_accounts", "id, currency, returned, version", u + ", 'USD', 0, 1"},
	{"charges", "id, booking_id, amount, unapplied", "'pi_1', gen_random_uuid(), 1, 0"},
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Isolation(t, migrations.FS, rows, "leads_converting", "quotes_due", "quotes_left", "credit_notes_calls")
}

func TestWorkerSeesOnlyWhatItServes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS).Worker
	for _, table := range []string{
		"customer_words", "customer_metadata", "catalogue_items", "invoices", "invoice_payments", "invoice_metadata",
		"invoice_counters", "lead_words", "lead_metadata",
		"quote_metadata", "quote_counters", "credit_note_refunds", "credit_note_counters", "money_accounts",
	} {
		err := db.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `select from `+table)
			return err
		})
		if pg.Code(err) != "42501" {
			t.Errorf("%s: %v", table, err)
		}
	}
}
