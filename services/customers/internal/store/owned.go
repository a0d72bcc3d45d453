package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// OwnedRow is the position of a row that belongs to a customer.
type OwnedRow struct {
	ID        [16]byte
	CreatedAt time.Time
}

// OwnedRows reads one page of a kind of rows that belong to a customer, the newest first, without their content.
type OwnedRows func(ctx context.Context, q pg.Q, customer domain.CustomerID, r page.Request) (page.Rows[OwnedRow], error)

// The rows that belong to a customer, by kind.
var (
	LeadRows    = ownedRows("leads", "o.person_id")
	QuoteRows   = ownedRows("quotes", "o.customer_id")
	InvoiceRows = ownedRows("invoices", "o.customer_id")
)

func ownedRows(table, owner string) OwnedRows {
	return func(ctx context.Context, q pg.Q, customer domain.CustomerID, r page.Request) (page.Rows[OwnedRow], error) {
		w := &page.Where{}
		w.Add(`o.tenant_id = @tenant and o.livemode = @live and `+owner+` = ?`, customer)
		tail, args := w.Page(r, "o")
		return page.Read(ctx, q, r, pgx.RowToStructByName[OwnedRow], `select o.id, o.created_at from `+table+` o `+tail, args...)
	}
}
