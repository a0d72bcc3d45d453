package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// CustomerFilter selects customers of a list. Nil and empty fields select all.
type CustomerFilter struct {
	Email    *string           // in any case
	Phone    *string           // as stored
	Search   string            // each word must be a prefix of a word of name, e-mail or company
	Metadata map[string]string // exact pairs
}

// Customers reads one page.
func Customers(ctx context.Context, q pg.Q, f CustomerFilter, r page.Request) (page.Rows[domain.Customer], error) {
	return page.Search(ctx, q, r, page.List[domain.Customer]{
		Alias: "c",
		Scan:  pgx.RowToStructByName[domain.Customer],
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			w := where(f)
			narrow(w)
			tail, args := w.Page(r, "c")
			return `select ` + customerColumns + ` from customers c ` + tail, args
		},
		Conditions: slices.Concat(customerWords.conditions("c", f.Search), page.MetadataConditions(customerMetadata, "c", f.Metadata)),
	})
}

// where returns the conditions on a customer's own row.
func where(f CustomerFilter) *page.Where {
	w := &page.Where{}
	w.Add(`c.tenant_id = @tenant and c.livemode = @live and c.erased_at is null`)
	if f.Email != nil {
		w.Add(`c.email_lower = ?`, domain.Fold(*f.Email))
	}
	if f.Phone != nil {
		w.Add(`c.phone = ?`, *f.Phone)
	}
	return w
}
