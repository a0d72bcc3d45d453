package store

import (
	"context"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// CustomerFilter narrows a list; nil and empty fields do not.
type CustomerFilter struct {
	Email    *string           // in any case
	Phone    *string           // as stored
	Search   string            // each word a prefix of a word of name, e-mail or company
	Metadata map[string]string // exact pairs
}

// Customers reads one page, with one row more than its limit when another page follows: see page.Body.
func Customers(ctx context.Context, q pg.Q, f CustomerFilter, r page.Request) ([]domain.Customer, error) {
	if conds := conditions(f); len(conds) > 0 {
		return search(ctx, q, f, r, conds)
	}
	tail, args := where(f).Page(r, "c")
	return many(ctx, q, `select `+customerColumns+` from customers c `+tail, args...)
}

// where are the conditions on a customer's own row.
func where(f CustomerFilter) *page.Where {
	w := &page.Where{}
	w.Add(`c.erased_at is null`)
	if f.Email != nil {
		w.Add(`c.email_lower = ?`, domain.Fold(*f.Email))
	}
	if f.Phone != nil {
		w.Add(`c.phone = ?`, *f.Phone)
	}
	return w
}
