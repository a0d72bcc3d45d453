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

// InsertCharge notes that a charge is put on invoices; false when it was before.
func InsertCharge(ctx context.Context, tx pg.Tx, c domain.Charge) (bool, error) {
	tag, err := tx.Exec(ctx, `
		insert into charges (tenant_id, livemode, id, booking_id, amount, unapplied) values (@tenant, @live, @id, @booking, @amount, @amount)
		on conflict do nothing`, pg.Args{"id": c.ID, "booking": c.Booking, "amount": c.Amount.Minor})
	if err != nil {
		return false, fmt.Errorf("insert charge: %w", err)
	}
	return tag.RowsAffected() == 1, nil
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
