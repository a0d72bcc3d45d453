package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// maxUnrecorded is how many rows one query of the command ledger returns.
const maxUnrecorded = 100

// LedgerOwners returns the tenants and modes with payments or credit notes. tx has the worker role.
func LedgerOwners(ctx context.Context, tx pg.Tx) ([]operation.Owner, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[operation.Owner], `
		select distinct tenant_id, livemode from charges union select distinct tenant_id, livemode from credit_notes order by 1, 2`)
}

// UnrecordedReceipts returns payments after the given one that clients recorded and that the ledger of payments may lack, by their ids.
func UnrecordedReceipts(ctx context.Context, q pg.Q, after domain.PaymentID) ([]domain.Receipt, error) {
	return pg.Many(ctx, q, scanReceipt, oneReceipt+`and c.version = 0 and c.amount > 0 and c.call_until is null and c.id::uuid > @after
		order by c.id::uuid limit @limit`, pg.Args{"after": after.UUID(), "limit": maxUnrecorded})
}

// ManualNotes returns credit notes after the given one with a manual refund, by their ids.
func ManualNotes(ctx context.Context, q pg.Q, after domain.CreditNoteID) ([]domain.CreditNote, error) {
	return notes.Many(ctx, q, `n.refund = 'manual' and n.returned > 0 and n.call_until is null and n.id > @after order by n.id limit @limit`,
		pg.Args{"after": after.UUID(), "limit": maxUnrecorded})
}

// AccountSum is what an account has received according to its charges.
type AccountSum struct {
	domain.AccountRef

	Received int64
}

// AccountSums returns the sums of the accounts with invoices that have payments other than card payments.
func AccountSums(ctx context.Context, q pg.Q) ([]AccountSum, error) {
	return pg.Many(ctx, q, func(row pgx.CollectableRow) (s AccountSum, err error) {
		var booking domain.BookingID
		var invoice domain.InvoiceID
		var currency string
		err = row.Scan(&booking, &invoice, &currency, &s.Received)
		s.AccountRef = domain.AccountOf(booking, invoice, currency)
		return s, err
	}, `
		with a as (select distinct v.booking_id, case when v.booking_id is null then v.id end as invoice_id, v.currency
			from charges c join invoices v on v.tenant_id = @tenant and v.livemode = @live and v.id = c.invoice_id
			where c.tenant_id = @tenant and c.livemode = @live and c.method <> 'card')
		select a.booking_id, coalesce(a.invoice_id, a.booking_id), a.currency, (select coalesce(sum(c.amount), 0)::bigint from charges c
			where c.tenant_id = @tenant and c.livemode = @live and c.booking_id = coalesce(a.booking_id, a.invoice_id)
				and coalesce(c.currency, a.currency) = a.currency)
		from a order by 1, 2, 3`, pg.Args{})
}
