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

// erasure clears columns of the rows of a customer, and rows that belong to them.
type erasure struct {
	table, owner string
	set          string
	then         []string // statements for the rows with the ids @ids
}

// EraseInvoices clears the personal data of the next invoices of a customer after the given one, in the order of their creation:
// address, notes, metadata and the references of payments. The recipient stays, as the law requires. If no invoice follows, it
// returns none. The transaction has locked the customer.
func EraseInvoices(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	return erasure{"invoices", "customer_id", `billing_address = null, notes = null, metadata = null`, []string{
		`update invoice_payments p set reference = null
			where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = any(@ids) and p.reference is not null`,
		`update charges c set reference = null
			from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = any(@ids)
				and c.tenant_id = @tenant and c.livemode = @live and c.booking_id = ` + invoiceAccount + `
				and c.invoice_id = v.id and c.reference is not null`,
		`delete from invoice_metadata m where m.tenant_id = @tenant and m.livemode = @live and m.invoice_id = any(@ids)`,
	}}.next(ctx, tx, customer, after)
}

// EraseLeads is EraseInvoices for the leads of a customer. It clears everything that the contract marks as personal, the search
// terms and the metadata.
func EraseLeads(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	return erasure{"leads", "person_id", `first_name = '', last_name = null, email = null, email_lower = null, phone = null, company = null,
			message = null, lost_reason = null, metadata = null`, []string{
		`delete from lead_words w where w.tenant_id = @tenant and w.livemode = @live and w.lead_id = any(@ids)`,
		`delete from lead_metadata m where m.tenant_id = @tenant and m.livemode = @live and m.lead_id = any(@ids)`,
	}}.next(ctx, tx, customer, after)
}

// EraseCreditNotes is EraseInvoices for the credit notes of a customer. It clears the reason. Amounts and lines stay.
func EraseCreditNotes(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	return erasure{"credit_notes", "customer_id", `reason = null`, nil}.next(ctx, tx, customer, after)
}

// EraseQuotes is EraseInvoices for the quotes of a customer. It clears reason, notes and metadata. Amounts stay.
func EraseQuotes(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	return erasure{"quotes", "customer_id", `decline_reason = null, notes = null, metadata = null`, []string{
		`delete from quote_metadata m where m.tenant_id = @tenant and m.livemode = @live and m.quote_id = any(@ids)`,
	}}.next(ctx, tx, customer, after)
}

func (e erasure) next(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after Erased) ([]Erased, error) {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[Erased], fmt.Sprintf(`
		with next as (
			select i.id from %[1]s i
			where i.tenant_id = @tenant and i.livemode = @live and i.%[2]s = @customer and (i.created_at, i.id) > (@at, @id)
			order by i.created_at, i.id limit @limit for update)
		update %[1]s o set %[3]s, version = o.version + 1, updated_at = clock_timestamp()
		from next where o.tenant_id = @tenant and o.livemode = @live and o.id = next.id
		returning o.id, o.version, o.created_at`, e.table, e.owner, e.set),
		pg.Args{"customer": customer, "at": after.CreatedAt, "id": after.ID, "limit": eraseBatch})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	b := &pgx.Batch{}
	for _, sql := range e.then {
		b.Queue(sql, pg.Args{"ids": pg.Column(list, func(e Erased) [16]byte { return e.ID })})
	}
	return pg.SendFor(ctx, tx, b, "erase "+e.table, &list)
}
