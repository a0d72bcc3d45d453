package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// Invoices are the use cases of an invoice.
type Invoices struct {
	Bookings  BookingService
	Tenants   TenantService
	Catalogue *Catalogue
	Customers *Customers
	// Wake signals the relay that an event has been committed.
	Wake func()
	// Now returns real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// DocumentContext returns what a document takes from its operator and its time.
func (a *Invoices) DocumentContext(ctx context.Context) (domain.DocumentContext, error) {
	c := caller.FromContext(ctx)
	zone, err := civil.Location(c.Timezone)
	if err != nil {
		return domain.DocumentContext{}, err
	}
	return domain.DocumentContext{Currency: c.Currency, Zone: zone, Now: c.Now(a.Now()).UTC().Truncate(time.Microsecond)}, nil
}

// InvoiceWrite is the input of an invoice, with the data requested from bookings before its transaction.
type InvoiceWrite struct {
	domain.InvoiceInput

	bookings BookingService
	found    lookup
	taxes    taxDefaults
}

// PrepareCreate requests the booking of a balance, because the booking's current total applies, and the tenant's default taxes if they
// can apply.
func (a *Invoices) PrepareCreate(ctx context.Context, in domain.InvoiceInput) (*InvoiceWrite, error) {
	w := &InvoiceWrite{InvoiceInput: in, bookings: a.Bookings}
	if in.MakesBalance() {
		_, booking := in.Named()
		w.found = lookUp(ctx, a.Bookings, booking)
	}
	if in.NeedsDefaults() {
		w.taxes = newTaxDefaults(ctx, a.Tenants, a.Catalogue)
	}
	return w, nil
}

// PrepareUpdate requests the tenant's default taxes if they can apply. If the projection lacks the booking, InvoiceWrite requests it
// from bookings later.
func (a *Invoices) PrepareUpdate(ctx context.Context, in domain.InvoiceInput) (*InvoiceWrite, error) {
	w := &InvoiceWrite{InvoiceInput: in, bookings: a.Bookings}
	if in.Untaxed() {
		w.taxes = newTaxDefaults(ctx, a.Tenants, a.Catalogue)
	}
	return w, nil
}

// Create drafts an invoice.
func (a *Invoices) Create(ctx context.Context, tx pg.Tx, w *InvoiceWrite) (domain.Invoice, error) {
	at, err := a.DocumentContext(ctx)
	if err != nil {
		return domain.Invoice{}, err
	}
	refs, err := w.refs(ctx, tx)
	if err != nil {
		return domain.Invoice{}, err
	}
	if w.NeedsDefaults() {
		if refs.Defaults, err = w.defaults(ctx, tx, refs.Booking); err != nil {
			return domain.Invoice{}, err
		}
	}
	var locale *string
	if refs.Customer != nil {
		locale = refs.Customer.Locale
	}
	refs.Wording = view.NewLanguage(w.taxes.tenant.Language(locale))
	v, err := domain.NewInvoice(ids.New[ids.InvoicePrefix](), w.InvoiceInput, refs, at)
	if err != nil {
		return domain.Invoice{}, err
	}
	if v, err = store.InsertInvoice(ctx, tx, v); err != nil {
		return domain.Invoice{}, err
	}
	body, err := outbox.Body(ctx, view.Invoice, v)
	if err != nil {
		return domain.Invoice{}, err
	}
	return v, outbox.Emit(ctx, tx, a.Wake, invoiceCreated(v, body))
}

// refs reads the rows that an input names. It locks the customer first, as an erasure does, and then the booking of a balance. Of
// two simultaneous balances, the second one therefore takes the first one into account.
func (w *InvoiceWrite) refs(ctx context.Context, tx pg.Tx) (refs domain.InvoiceRefs, err error) {
	customer, booking := w.Named()
	if !w.CustomerID.Given() && w.found.booking != nil {
		customer = w.found.booking.CustomerID
	}
	if refs.Customer, err = referencedCustomer(ctx, tx, customer); err != nil {
		return refs, err
	}
	if refs.Booking, err = w.booking(ctx, tx, booking); err != nil || refs.Booking == nil {
		return refs, err
	}
	if !w.CustomerID.Given() && w.found.booking == nil {
		if refs.Customer, err = referencedCustomer(ctx, tx, refs.Booking.CustomerID); err != nil {
			return refs, err
		}
	}
	if w.MakesBalance() {
		refs.Balance, err = store.Balance(ctx, tx, booking)
	}
	return refs, err
}

// referencedCustomer reads a customer that a row is to reference, and prevents its erasure. It returns nil if there is none.
func referencedCustomer(ctx context.Context, tx pg.Tx, id domain.CustomerID) (*domain.Customer, error) {
	if id.IsZero() {
		return nil, nil
	}
	c, err := store.CustomerForReference(ctx, tx, id)
	if errors.Is(err, domain.ErrCustomerNotFound) {
		return nil, nil
	}
	return &c, err
}

// Update changes the given fields. A change that is not visible creates no new version and no event. Update reads the objects that
// the input names before it locks the invoice, because an erasure also locks the customer first.
func (a *Invoices) Update(ctx context.Context, tx pg.Tx, id domain.InvoiceID, w *InvoiceWrite, match patch.Precondition) (domain.Invoice, error) {
	customer, booking := w.Named()
	var refs domain.InvoiceRefs
	var err error
	if refs.Customer, err = referencedCustomer(ctx, tx, customer); err != nil {
		return domain.Invoice{}, err
	}
	if refs.Booking, err = w.booking(ctx, tx, booking); err != nil {
		return domain.Invoice{}, err
	}
	return a.change(ctx, tx, id, func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
		if w.Untaxed() && current.Status == domain.InvoiceDraft {
			sold := refs.Booking
			if !w.BookingID.Given() {
				if sold, err = w.booking(ctx, tx, current.BookingID); err != nil {
					return domain.Invoice{}, err
				}
			}
			if refs.Defaults, err = w.defaults(ctx, tx, sold); err != nil {
				return domain.Invoice{}, err
			}
		}
		return current.Change(w.InvoiceInput, refs, at, match)
	}, store.UpdateInvoice)
}

// defaults returns what applies to an invoice of a booking that specifies no taxes. b is nil if there is no booking.
func (w *InvoiceWrite) defaults(ctx context.Context, tx pg.Tx, b *domain.Booking) (domain.TaxDefaults, error) {
	var service domain.ServiceID
	if b != nil && (w.Untaxed() || w.MakesBalance()) {
		service = b.ServiceID
	}
	return w.taxes.of(ctx, tx, service, domain.PackageID{})
}

// Opening is the data requested from other services for the opening of an invoice.
type Opening struct {
	domain.Invoicing
	Fresh

	unknown  error // why identity did not return the tenant's details
	bookings BookingService
	found    lookup
	about    domain.BookingID // the booking of found
}

// PrepareOpen requests the tenant's details from identity. Only opening a draft needs them.
func (a *Invoices) PrepareOpen(ctx context.Context) (*Opening, error) {
	info, unknown := a.Tenants.Invoicing(ctx)
	return &Opening{Invoicing: info, unknown: unknown, bookings: a.Bookings}, nil
}

// booking returns a booking as bookings describes it, or nil if there is none. It locks the row of the booking, which serializes the
// opening with a balance that is being created or opened. An event that arrived since the request describes a newer state.
func (o *Opening) booking(ctx context.Context, tx pg.Tx, id domain.BookingID) (*domain.Booking, error) {
	again := &operation.Again{Why: "the current state of booking " + id.String() + " is not known", Fetch: func(ctx context.Context) error {
		o.about, o.found = id, lookUp(ctx, o.bookings, id)
		return nil
	}}
	switch {
	case o.about != id:
		return nil, again
	case o.found.err != nil || o.found.booking == nil:
		return nil, o.found.err
	}
	store.PutBooking(tx, *o.found.booking)
	known, err := store.BookingForUpdate(ctx, tx, id)
	if err == nil && known.Version > o.found.booking.Version {
		err = again
	}
	return o.found.booking, err
}

// Served returns the days of the service that an invoice charges: those of its booking when it was opened or, if it is a draft, those of
// its booking now. It returns nil if they are not known.
func (a *Invoices) Served(ctx context.Context, v domain.Invoice) (*domain.Days, error) {
	if v.Served != nil || v.BookingID.IsZero() {
		return v.Served, nil
	}
	found := lookUp(ctx, a.Bookings, v.BookingID)
	if found.err != nil || found.booking == nil {
		return nil, found.err
	}
	return found.booking.Days, nil
}

// Open gives a draft its number and freezes it. Opening an open invoice changes nothing.
func (a *Invoices) Open(ctx context.Context, tx pg.Tx, id domain.InvoiceID, info *Opening, match patch.Precondition) (domain.Invoice, error) {
	var prefix string
	return a.changeAndAllocate(ctx, tx, id, func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
		prefix = info.NumberPrefix(at)
		if err := match.Check(current.Version); err != nil {
			return domain.Invoice{}, err
		}
		return info.open(ctx, tx, current, at)
	}, func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
		v, err := store.OpenInvoice(ctx, tx, v, prefix)
		failpoint.Here("open.numbered")
		tx.AfterCommit(func() { failpoint.Here("open.committed") })
		return v, err
	})
}

// open returns the invoice after its opening. From then on its total counts as invoiced for its booking. The lines of a balance that the
// platform wrote are written again, from the current price of the booking and its opened invoices.
func (o *Opening) open(ctx context.Context, tx pg.Tx, current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
	customer, err := store.Customer(ctx, tx, current.CustomerID)
	known := &customer
	if errors.Is(err, domain.ErrCustomerNotFound) {
		known, err = nil, nil
	}
	if err != nil {
		return domain.Invoice{}, err
	}
	reader := o.Language(customer.Locale)
	v, err := current.Opened(known, reader, at)
	if err != nil || v.Status == current.Status {
		return v, err
	}
	if o.unknown != nil {
		return domain.Invoice{}, o.unknown
	}
	if v.BookingID.IsZero() {
		return v, nil
	}
	b, err := o.booking(ctx, tx, v.BookingID)
	if err != nil || b == nil {
		return v, err
	}
	if v.Served = b.Days; !v.WrittenBalance() {
		return v, nil
	}
	balance, err := store.Balance(ctx, tx, v.BookingID)
	if err != nil {
		return domain.Invoice{}, err
	}
	return v.Rebalanced(balance, *b, view.NewLanguage(reader), at.Zone)
}

// Delete deletes a draft. It erases the copies of the draft, because a later erasure of the customer would not find them.
func (a *Invoices) Delete(ctx context.Context, tx pg.Tx, id domain.InvoiceID, match patch.Precondition) error {
	current, err := store.InvoiceForUpdate(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := match.Check(current.Version); err != nil {
		return err
	}
	if current.Status != domain.InvoiceDraft {
		return domain.NotDraft("invoice", string(current.Status))
	}
	if err := store.DeleteInvoice(ctx, tx, id); err != nil {
		return err
	}
	deleted := ownedInvoices
	deleted.body = view.DeletedInvoice
	return a.Customers.eraseCopies(ctx, tx, deleted, []store.Erased{{ID: id.UUID(), Version: current.Version + 1}})
}

// Void voids an invoice without payments.
func (a *Invoices) Void(ctx context.Context, tx pg.Tx, id domain.InvoiceID, match patch.Precondition) (domain.Invoice, error) {
	return a.act(ctx, tx, id, match, domain.Invoice.Voided)
}

// MarkUncollectible marks an invoice as one that will hardly be paid.
func (a *Invoices) MarkUncollectible(ctx context.Context, tx pg.Tx, id domain.InvoiceID, match patch.Precondition) (domain.Invoice, error) {
	return a.act(ctx, tx, id, match, domain.Invoice.GivenUp)
}

// act changes only the state of an invoice.
func (a *Invoices) act(
	ctx context.Context, tx pg.Tx, id domain.InvoiceID, match patch.Precondition,
	apply func(v domain.Invoice, at domain.DocumentContext) (domain.Invoice, error),
) (domain.Invoice, error) {
	return a.change(ctx, tx, id, func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
		if err := match.Check(current.Version); err != nil {
			return domain.Invoice{}, err
		}
		return apply(current, at)
	}, store.UpdateInvoice)
}

// change locks an invoice, applies a change, and, if the change is visible, writes the invoice with its event.
func (a *Invoices) change(
	ctx context.Context, tx pg.Tx, id domain.InvoiceID, apply func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error),
	write func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error),
) (domain.Invoice, error) {
	current, err := store.InvoiceForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Invoice{}, err
	}
	at, err := a.DocumentContext(ctx) // after the lock, so that what others wrote while we waited is not in the future
	if err != nil {
		return domain.Invoice{}, err
	}
	current = current.At(at)
	next, err := apply(current, at)
	if err != nil {
		return domain.Invoice{}, err
	}
	was, err := outbox.Body(ctx, view.Invoice, current)
	if err != nil {
		return domain.Invoice{}, err
	}
	will, err := outbox.Body(ctx, view.Invoice, next)
	if err != nil || string(outbox.Diff(was, will)) == "{}" {
		return current, err
	}
	return a.save(ctx, tx, next, was, current.Status, write)
}

// save writes a changed invoice and its event.
func (a *Invoices) save(
	ctx context.Context, tx pg.Tx, next domain.Invoice, was json.RawMessage, before domain.InvoiceStatus,
	write func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error),
) (domain.Invoice, error) {
	saved, err := write(ctx, tx, next)
	if err != nil {
		return domain.Invoice{}, err
	}
	is, err := outbox.Body(ctx, view.Invoice, saved)
	if err != nil {
		return domain.Invoice{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Wake, invoiceChanged(saved, before, is, outbox.Diff(was, is)))
}

// OpenForQuote opens the invoice of an accepted quote in the transaction that accepts it: for the deposit if there is one, or else
// for the total. info was requested before the transaction.
func (a *Invoices) OpenForQuote(
	ctx context.Context, tx pg.Tx, q domain.InvoiceSource, b domain.Booking, info domain.Invoicing,
) (domain.InvoiceID, error) {
	none := domain.InvoiceID{}
	at, err := a.DocumentContext(ctx)
	if err != nil {
		return none, err
	}
	customer, err := store.Customer(ctx, tx, q.Customer)
	erased := errors.Is(err, domain.ErrCustomerNotFound) // since the accept began, which is not undone
	if err != nil && !erased {
		return none, err
	}
	of := domain.AccountRef{Booking: b.ID, Currency: q.Totals.Total.Currency}
	store.LockAccount(tx, of)
	store.PutBooking(tx, b)
	q.Wording = view.NewLanguage(info.Language(customer.Locale))
	draft, err := domain.InvoiceOf(ids.New[ids.InvoicePrefix](), q, b)
	if err != nil {
		return none, err
	}
	final, err := draft.Opened(&customer, info.Language(customer.Locale), at)
	if err != nil {
		return none, err
	}
	if erased {
		final.Billing = &domain.Billing{}
	}
	first := final
	first.Status, first.PaidAt = domain.InvoiceOpen, nil // its event reports the opening, even if nothing is due
	if first, err = store.InsertOpened(ctx, tx, first, info.NumberPrefix(at)); err != nil {
		return none, err
	}
	body, err := outbox.Body(ctx, view.Invoice, first)
	if err != nil {
		return none, err
	}
	if err := outbox.Emit(ctx, tx, a.Wake, invoiceCreated(first, body)); err != nil {
		return none, err
	}
	if final.Status == first.Status {
		_, err = a.allocate(ctx, tx, of, none)
		return first.ID, err
	}
	final.Number, final.CreatedAt = first.Number, first.CreatedAt
	_, err = a.save(ctx, tx, final, body, first.Status, store.UpdateInvoice)
	return first.ID, err
}
