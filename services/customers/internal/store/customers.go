package store

import (
	"context"
	"maps"
	"slices"
	"strings"

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
	w := &page.Where{}
	w.Add(`c.erased_at is null`)
	if f.Email != nil {
		w.Add(`c.email_lower = ?`, domain.Fold(*f.Email))
	}
	if f.Phone != nil {
		w.Add(`c.phone = ?`, *f.Phone)
	}
	addMatches(w, f)
	tail, args := w.Page(r, "c")
	return many(ctx, q, `select `+customerColumns+` from customers c `+tail, args...)
}

// addMatches narrows by the two index tables. Their ids are collected first, as an array: whatever the
// planner believes of a parameter it has not seen, it then reads the index ranges of what was asked and the
// customers by key, never all customers of the tenant.
func addMatches(w *page.Where, f CustomerFilter) {
	var selects []string
	var args []any
	for _, p := range domain.Prefixes(f.Search) {
		selects = append(selects, `select customer_id from customer_words where word >= ? and word < ?`)
		args = append(args, p.From, p.Before)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		selects = append(selects, `select customer_id from customer_metadata where key = ? and value = ?`)
		args = append(args, key, f.Metadata[key])
	}
	if len(selects) > 0 {
		w.Add(`c.id = any(array(`+strings.Join(selects, " intersect ")+`))`, args...)
	}
}
