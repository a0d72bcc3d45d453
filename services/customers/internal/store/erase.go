package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// eraseBatch is how many rows one step of an erasure clears.
const eraseBatch = 100

// Erased is a row whose personal data was cleared by an erasure, with the version of the erasure.
type Erased struct {
	ID        [16]byte
	Version   int64
	CreatedAt time.Time
}

// Compare orders by creation.
func (e Erased) Compare(o Erased) int {
	return cmp.Or(e.CreatedAt.Compare(o.CreatedAt), bytes.Compare(e.ID[:], o.ID[:]))
}

// EraseInvoices clears the personal data of the next invoices of a customer after the given one, in the order of their creation:
// address, notes, metadata and the references of payments. The recipient stays, as the law requires. If no invoice follows, it
// returns none. The transaction has locked the customer.
func EraseInvoices(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[Erased], `
		with next as (
			select i.id from invoices i
			where i.tenant_id = @tenant and i.livemode = @live and i.customer_id = @customer and (i.created_at, i.id) > (@at, @id)
			order by i.created_at, i.id limit @limit for update)
		update invoices v set billing_address = null, notes = null, metadata = null, version = v.version + 1, updated_at = clock_timestamp()
		from next where v.tenant_id = @tenant and v.livemode = @live and v.id = next.id
		returning v.id, v.version, v.created_at`,
		pg.Args{"customer": customer, "at": after.CreatedAt, "id": after.ID, "limit": eraseBatch})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ids := erasedIDs(list)
	b := &pgx.Batch{}
	b.Queue(`update invoice_payments p set reference = null
		where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = any(@ids) and p.reference is not null`, pg.Args{"ids": ids})
	b.Queue(`update charges c set reference = null
		from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = any(@ids)
			and c.tenant_id = @tenant and c.livemode = @live and c.booking_id = `+invoiceAccount+`
			and c.invoice_id = v.id and c.reference is not null`, pg.Args{"ids": ids})
	b.Queue(`delete from invoice_metadata m where m.tenant_id = @tenant and m.livemode = @live and m.invoice_id = any(@ids)`, pg.Args{"ids": ids})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("erase invoices: %w", err)
	}
	return list, nil
}

// EraseLeads is EraseInvoices for the leads of a customer. It clears everything that the contract marks as personal, the search
// terms and the metadata.
func EraseLeads(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[Erased], `
		with next as (
			select i.id from leads i
			where i.tenant_id = @tenant and i.livemode = @live and i.person_id = @customer and (i.created_at, i.id) > (@at, @id)
			order by i.created_at, i.id limit @limit for update)
		update leads l set first_name = '', last_name = null, email = null, email_lower = null, phone = null, company = null, message = null,
			lost_reason = null, metadata = null, version = l.version + 1, updated_at = clock_timestamp()
		from next where l.tenant_id = @tenant and l.livemode = @live and l.id = next.id
		returning l.id, l.version, l.created_at`,
		pg.Args{"customer": customer, "at": after.CreatedAt, "id": after.ID, "limit": eraseBatch})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ids := erasedIDs(list)
	b := &pgx.Batch{}
	b.Queue(`delete from lead_words w where w.tenant_id = @tenant and w.livemode = @live and w.lead_id = any(@ids)`, pg.Args{"ids": ids})
	b.Queue(`delete from lead_metadata m where m.tenant_id = @tenant and m.livemode = @live and m.lead_id = any(@ids)`, pg.Args{"ids": ids})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("erase leads: %w", err)
	}
	return list, nil
}

// EraseCreditNotes is EraseInvoices for the credit notes of a customer. It clears the reason. Amounts and lines stay.
func EraseCreditNotes(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[Erased], `
		with next as (
			select i.id from credit_notes i
			where i.tenant_id = @tenant and i.livemode = @live and i.customer_id = @customer and (i.created_at, i.id) > (@at, @id)
			order by i.created_at, i.id limit @limit for update)
		update credit_notes n set reason = null, version = n.version + 1, updated_at = clock_timestamp()
		from next where n.tenant_id = @tenant and n.livemode = @live and n.id = next.id
		returning n.id, n.version, n.created_at`,
		pg.Args{"customer": customer, "at": after.CreatedAt, "id": after.ID, "limit": eraseBatch})
}

func erasedIDs(list []Erased) [][16]byte {
	ids := make([][16]byte, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids
}

// EraseQuotes is EraseInvoices for the quotes of a customer. It clears reason, notes and metadata. Amounts stay.
func EraseQuotes(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[Erased], `
		with next as (
			select i.id from quotes i
			where i.tenant_id = @tenant and i.livemode = @live and i.customer_id = @customer and (i.created_at, i.id) > (@at, @id)
			order by i.created_at, i.id limit @limit for update)
		update quotes q set decline_reason = null, notes = null, metadata = null, version = q.version + 1, updated_at = clock_timestamp()
		from next where q.tenant_id = @tenant and q.livemode = @live and q.id = next.id
		returning q.id, q.version, q.created_at`,
		pg.Args{"customer": customer, "at": after.CreatedAt, "id": after.ID, "limit": eraseBatch})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	_, err = tx.Exec(ctx, `delete from quote_metadata m where m.tenant_id = @tenant and m.livemode = @live and m.quote_id = any(@ids)`,
		pg.Args{"ids": erasedIDs(list)})
	if err != nil {
		return nil, fmt.Errorf("erase quotes: %w", err)
	}
	return list, nil
}
