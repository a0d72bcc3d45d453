package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// InvoiceFilter selects invoices of a list. Nil and empty fields select all.
type InvoiceFilter struct {
	Status    []domain.InvoiceStatus
	Overdue   *bool
	Today     time.Time // start of the operator's day; what is due before it is overdue
	Customer  *domain.CustomerID
	Booking   *domain.BookingID
	Number    *string // ignores case
	DueBefore *time.Time
	Metadata  map[string]string // exact pairs
}

// Invoices reads one page.
func Invoices(ctx context.Context, q pg.Q, f InvoiceFilter, r page.Request) (page.Rows[domain.Invoice], error) {
	return page.Search(ctx, q, r, page.List[domain.Invoice]{
		Alias: "v",
		Scan:  invoices.Scan,
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			return page.Union(r, page.OneOf("v.status", f.Status), func(w *page.Where) (string, []any) { return invoicesOf(w, f, r, narrow) })
		},
		Conditions: slices.Concat(dueConditions(f), page.MetadataConditions(invoiceMetadata, "v", f.Metadata)),
	})
}

func invoicesOf(w *page.Where, f InvoiceFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`v.tenant_id = @tenant and v.livemode = @live`)
	page.Equal(w, `v.customer_id = ?`, f.Customer)
	page.Equal(w, `v.booking_id = ?`, f.Booking)
	if f.Number != nil {
		w.Add(`v.seq = any(?)`, domain.InvoiceCounters(*f.Number)) // uses an index, which upper() cannot
		w.Add(`upper(v.number) = ?`, strings.ToUpper(*f.Number))
	}
	narrow(w)
	tail, args := w.Page(r, "v")
	return invoices.Select + tail, args
}

const invoiceIDs = `select i.id from invoices i where i.tenant_id = @tenant and i.livemode = @live and `

// dueConditions returns the conditions on due_at. If few rows match, a separate index reads them. If many match, they are checked
// in the order of the list.
func dueConditions(f InvoiceFilter) []page.Condition {
	var out []page.Condition
	if f.DueBefore != nil {
		out = append(out, page.Condition{
			IDs: []string{invoiceIDs + `i.due_at < ?`}, Has: `v.due_at < ?`, Args: []any{*f.DueBefore},
		})
	}
	if f.Overdue == nil {
		return out
	}
	if *f.Overdue {
		return append(out, page.Condition{
			IDs: []string{invoiceIDs + `i.status in ('open', 'partially_paid') and i.due_at < ?`},
			Has: `(v.status in ('open', 'partially_paid') and v.due_at < ?)`, Args: []any{f.Today},
		})
	}
	return append(out, page.Condition{
		IDs: []string{
			invoiceIDs + `i.status in ('draft', 'paid', 'uncollectible', 'void', 'credited')`,
			invoiceIDs + `i.status in ('open', 'partially_paid') and i.due_at is null`,
			invoiceIDs + `i.status in ('open', 'partially_paid') and i.due_at >= ?`,
		},
		Has:  `(v.status not in ('open', 'partially_paid') or v.due_at is null or v.due_at >= ?)`,
		Args: []any{f.Today},
	})
}
