package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// maxPayable bounds the invoices of a booking that one charge is put on.
const maxPayable = 100

// InsertCharge notes that a charge is put on invoices; false when it was before. Its row is locked until the transaction ends.
func InsertCharge(ctx context.Context, tx pg.Tx, c domain.Charge) (bool, error) {
	tag, err := tx.Exec(ctx, `
		insert into charges (tenant_id, livemode, id, booking_id, amount, unapplied) values (@tenant, @live, @id, @booking, @amount, @amount)
		on conflict do nothing`, pg.Args{"id": c.ID, "booking": c.Booking, "amount": c.Amount.Minor})
	if err != nil {
		return false, fmt.Errorf("insert charge: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// PutChargeState writes what the gateway says of a charge, unless something as new is known already; false then. unapplied is what no
// invoice took of it.
func PutChargeState(ctx context.Context, tx pg.Tx, c domain.Charge) (unapplied int64, newer bool, err error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[int64], `
		update charges c set refunded = @refunded, disputed = @disputed, version = @version
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and c.version < @version returning c.unapplied`,
		pg.Args{"id": c.ID, "refunded": c.Refunded, "disputed": c.Disputed, "version": c.Version})
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return found[0], true, nil
}

// ChargedInvoices returns the invoices that a charge has paid, in the order in which it did.
func ChargedInvoices(ctx context.Context, tx pg.Tx, c domain.Charge) ([]domain.ChargedInvoice, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[domain.ChargedInvoice], `
		select p.invoice_id as invoice, p.amount from invoices v
		join invoice_payments p on p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id
		where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @booking
			and p.source = 'gateway' and coalesce(p.charge_id, p.reference) = @id
		order by p.charge_part, p.paid_at, p.id`, pg.Args{"booking": c.Booking, "id": c.ID})
}

// SaveUnapplied notes what no invoice took of a charge.
func SaveUnapplied(ctx context.Context, tx pg.Tx, id string, amount int64) error {
	_, err := tx.Exec(ctx, `update charges c set unapplied = @amount where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`,
		pg.Args{"id": id, "amount": amount})
	if err != nil {
		return fmt.Errorf("save charge: %w", err)
	}
	return nil
}

// PayableInvoices returns the invoices of a booking that wait for money, in the order in which a payment is put on them: the one
// that it names, then deposits, balances and full ones, each the oldest first.
func PayableInvoices(ctx context.Context, tx pg.Tx, booking domain.BookingID, named domain.InvoiceID) ([]domain.InvoiceID, error) {
	return pg.Many(ctx, tx, pgx.RowTo[domain.InvoiceID], `
		select v.id from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @booking and v.status in ('open', 'partially_paid', 'uncollectible')
		order by v.id is distinct from @named::uuid, array_position(array['deposit', 'balance', 'full'], v.kind), v.created_at, v.id
		limit @limit`, pg.Args{"booking": booking, "named": named, "limit": maxPayable})
}
