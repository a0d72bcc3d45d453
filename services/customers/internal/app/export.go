package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

const (
	exportRows    = page.DownloadRows // rows that an export reads in one query; their bodies are no larger than a page
	exportObjects = 100               // objects per call for events
)

// Exports writes what the platform stores about a customer. It reads each page in a separate statement or call. An export therefore
// holds few pages in memory, and no transaction while it waits.
type Exports struct {
	DB       *pg.DB
	Invoices *Invoices
	Bookings CustomerResources
	Payments CustomerResources
	Refunds  CustomerBodies // no public event is about refunds
	Events   ObjectEvents
}

// bodies is a sequence of the public bodies of a kind of resource, page by page. An error is the last element.
type bodies = iter.Seq2[[]json.RawMessage, error]

// Write writes the export of a customer. It writes the first byte after the other services have responded.
func (a *Exports) Write(ctx context.Context, c domain.Customer, w io.Writer) error {
	at, err := a.Invoices.DocumentContext(ctx)
	if err != nil {
		return err
	}
	customer, err := contract.Encode(view.Customer(c, exportMode(ctx)))
	if err != nil {
		return err
	}
	type array struct {
		name  string
		pages bodies
	}
	arrays := []array{
		{"bookings", bodiesOf(ctx, a.Bookings, c.ID)},
		{"payment_intents", bodiesOf(ctx, a.Payments, c.ID)},
		{"refunds", bodiesOf(ctx, a.Refunds, c.ID)},
		{"events", a.events(ctx, c.ID)},
	}
	for i := range arrays {
		all, stop, err := begun(arrays[i].pages)
		defer stop()
		if err != nil {
			return err
		}
		arrays[i].pages = all
	}
	var own []array
	for _, kind := range ownedByCustomer {
		own = append(own, array{kind.name, a.owned(ctx, kind, c.ID, at)})
	}
	d := &document{w: w, out: fmt.Appendf(nil, `{"object":"customer_export","customer":%s`, customer)}
	for _, all := range slices.Insert(arrays, 1, own...) {
		if err := d.array(all.name, all.pages); err != nil {
			return err
		}
	}
	return d.end()
}

// bodiesOf returns the resources of a customer in another service.
func bodiesOf(ctx context.Context, from CustomerBodies, customer domain.CustomerID) bodies {
	return paged(ctx, func(cursor string) ([]json.RawMessage, string, bool, error) {
		list, next, err := from.BodiesOf(ctx, customer, cursor)
		return list, next, next != "", err
	})
}

// owned returns the resources of a kind that belong to a customer.
func (a *Exports) owned(ctx context.Context, kind owned, customer domain.CustomerID, at domain.DocumentContext) bodies {
	return paged(ctx, func(after *page.Position) ([]json.RawMessage, *page.Position, bool, error) {
		p, err := kind.show(ctx, a.DB.Read(ctx), customer, at, page.Request{Limit: exportRows, After: after})
		return p.bodies, &p.last, p.more, err
	})
}

// events returns the events about a customer and everything that belongs to it. It reads the ids a second time, so that they need
// not stay in memory.
func (a *Exports) events(ctx context.Context, customer domain.CustomerID) bodies {
	return func(yield func([]json.RawMessage, error) bool) {
		for objects, err := range batches(a.objects(ctx, customer), exportObjects) {
			if err != nil {
				yield(nil, err)
				return
			}
			for list, err := range a.eventsOf(ctx, objects) {
				if !yield(list, err) || err != nil {
					return
				}
			}
		}
	}
}

// batches regroups the elements of all pages into lists of n. The last list can be shorter.
func batches[T any](pages iter.Seq2[[]T, error], n int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var batch []T
		for list, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			for batch = append(batch, list...); len(batch) >= n; batch = batch[n:] {
				if !yield(batch[:n:n], nil) {
					return
				}
			}
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// eventsOf returns the events about at most exportObjects objects.
func (a *Exports) eventsOf(ctx context.Context, objects []string) bodies {
	return paged(ctx, func(cursor string) ([]json.RawMessage, string, bool, error) {
		list, next, err := a.Events.EventsOf(ctx, objects, cursor)
		return list, next, next != "", err
	})
}

// objects returns the ids of a customer and of everything that belongs to it, page by page.
func (a *Exports) objects(ctx context.Context, customer domain.CustomerID) iter.Seq2[[]string, error] {
	sources := []iter.Seq2[[]string, error]{func(yield func([]string, error) bool) { yield([]string{customer.String()}, nil) }}
	for _, kind := range ownedByCustomer {
		if kind.rows == nil {
			continue
		}
		sources = append(sources, a.idsOf(ctx, kind, customer))
	}
	for _, from := range []CustomerResources{a.Bookings, a.Payments} {
		sources = append(sources, paged(ctx, func(cursor string) ([]string, string, bool, error) {
			list, next, err := from.IDsOf(ctx, customer, cursor)
			return list, next, next != "", err
		}))
	}
	return func(yield func([]string, error) bool) {
		for _, source := range sources {
			for list, err := range source {
				if !yield(list, err) || err != nil {
					return
				}
			}
		}
	}
}

// idsOf returns the ids of a kind of resource that belong to a customer, page by page.
func (a *Exports) idsOf(ctx context.Context, kind owned, customer domain.CustomerID) iter.Seq2[[]string, error] {
	return paged(ctx, func(after *page.Position) ([]string, *page.Position, bool, error) {
		rows, err := kind.rows(ctx, a.DB.Read(ctx), customer, page.Request{Limit: exportRows, After: after})
		if err != nil || len(rows.Items) == 0 {
			return nil, nil, false, err
		}
		list := make([]string, len(rows.Items))
		for i, row := range rows.Items {
			list[i] = kind.id(row.ID)
		}
		last := rows.Items[len(rows.Items)-1]
		return list, &page.Position{At: last.CreatedAt, ID: last.ID}, rows.More, nil
	})
}

var exportSlots = page.NewSlots()

// paged returns the pages that next reads one after the other. Each call of next uses a slot of the tenant's exports, and gets the
// position that the previous call returned.
func paged[T, C any](ctx context.Context, next func(after C) (list []T, last C, more bool, err error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var at C
		for more := true; more; {
			var list []T
			err := exportSlots.Take(ctx, func() (_ bool, err error) {
				list, at, more, err = next(at)
				return more, err
			})
			if !yield(list, err) || err != nil {
				return
			}
		}
	}
}

// begun reads the first page. It returns a sequence of all pages, or the error of the first one. stop ends the reading at any time.
func begun(pages bodies) (all bodies, stop func(), err error) {
	next, stop := iter.Pull2(pages)
	first, err, more := next()
	if err != nil {
		return nil, stop, err
	}
	return func(yield func([]json.RawMessage, error) bool) {
		for list := first; more && yield(list, err); {
			list, err, more = next()
		}
	}, stop, nil
}

// document is a JSON object whose arrays are written page by page.
type document struct {
	w   io.Writer
	out []byte // not written yet
}

// array adds a property and writes it.
func (d *document) array(name string, pages bodies) error {
	d.out = fmt.Appendf(d.out, `,%q:[`, name)
	first := true
	for list, err := range pages {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, body := range list {
			if !first {
				d.out = append(d.out, ',')
			}
			first = false
			d.out = append(d.out, body...)
		}
		if err := d.flush(); err != nil {
			return err
		}
	}
	d.out = append(d.out, ']')
	return nil
}

// end writes the end of the object.
func (d *document) end() error {
	d.out = append(d.out, '}')
	return d.flush()
}

func (d *document) flush() error {
	_, err := d.w.Write(d.out)
	d.out = d.out[:0]
	return err
}

// exportPage is one page of a kind of resource.
type exportPage struct {
	bodies []json.RawMessage
	last   page.Position
	more   bool
}

// shown creates a page of the rows that were read.
func shown[T, V any](rows page.Rows[T], err error, place func(T) page.Position, shape func(T) V) (p exportPage, _ error) {
	if err != nil {
		return p, err
	}
	if p.bodies, p.more, err = page.Fit(rows, shape); err == nil && len(p.bodies) > 0 {
		p.last = place(rows.Items[len(p.bodies)-1])
	}
	return p, err
}

func exportMode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }

func showLeads(ctx context.Context, q pg.Q, customer domain.CustomerID, _ domain.DocumentContext, r page.Request) (exportPage, error) {
	rows, err := store.Leads(ctx, q, store.LeadFilter{Person: &customer}, r)
	return shown(rows, err, func(l domain.Lead) page.Position { return position(l.ID, l.CreatedAt) },
		func(l domain.Lead) api.Lead { return view.Lead(l, exportMode(ctx)) })
}

func showQuotes(ctx context.Context, q pg.Q, customer domain.CustomerID, at domain.DocumentContext, r page.Request) (exportPage, error) {
	rows, err := store.Quotes(ctx, q, store.QuoteFilter{Customer: &customer, Now: at.Now}, r)
	return shown(rows, err, func(q domain.Quote) page.Position { return position(q.ID, q.CreatedAt) },
		func(q domain.Quote) api.Quote { return view.Quote(q.At(at.Now), exportMode(ctx)) })
}

func showInvoices(ctx context.Context, q pg.Q, customer domain.CustomerID, at domain.DocumentContext, r page.Request) (exportPage, error) {
	rows, err := store.Invoices(ctx, q, store.InvoiceFilter{Customer: &customer}, r)
	return shown(rows, err, func(v domain.Invoice) page.Position { return position(v.ID, v.CreatedAt) },
		func(v domain.Invoice) api.Invoice { return view.Invoice(v.At(at), exportMode(ctx)) })
}

func showCreditNotes(ctx context.Context, q pg.Q, customer domain.CustomerID, _ domain.DocumentContext, r page.Request) (exportPage, error) {
	rows, err := store.CreditNotes(ctx, q, store.CreditNoteFilter{Customer: &customer}, r)
	return shown(rows, err, func(n domain.CreditNote) page.Position { return position(n.ID, n.CreatedAt) },
		func(n domain.CreditNote) api.CreditNote { return view.CreditNote(n, exportMode(ctx)) })
}

func position(id interface{ UUID() [16]byte }, created time.Time) page.Position {
	return page.Position{At: created, ID: id.UUID()}
}
