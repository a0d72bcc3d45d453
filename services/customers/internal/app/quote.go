package app

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// InvoiceOpener opens the invoice of an accepted quote, with its number and its event, in the transaction that accepts it.
type InvoiceOpener interface {
	OpenForQuote(ctx context.Context, tx pg.Tx, q domain.InvoiceSource, b domain.Booking, info domain.Invoicing) (domain.InvoiceID, error)
}

// LeadQuoter marks a lead as quoted, in the transaction that sends the quote.
type LeadQuoter interface {
	Quoted(ctx context.Context, tx pg.Tx, id domain.LeadID) error
}

// Quotes are the use cases of a quote.
type Quotes struct {
	DB        *pg.DB
	Bookings  BookingService
	Tenants   TenantService
	Catalogue *Catalogue
	Leads     LeadQuoter
	Invoices  InvoiceOpener
	Customers *Customers
	Numbers   *numbers.Numbers
	// Wake signals the relay that an event has been committed.
	Wake func()
	// Now returns real time; a caller's test clock is read from the caller.
	Now func() time.Time
	// MaxWait is how long a request waits for an accept that another request has begun.
	MaxWait time.Duration
}

// QuoteWrite is the input of a quote, with the data requested from other services before its transaction.
type QuoteWrite struct {
	domain.QuoteInput

	catalogue error // the errors on ids that the catalogue lacks
	price     *domain.PackagePrice
	taxes     taxDefaults
	number    string
}

// PrepareCreate checks with bookings that the ids exist. It requests a price if the package determines the line, and takes a
// number.
func (a *Quotes) PrepareCreate(ctx context.Context, in domain.QuoteInput) (w QuoteWrite, err error) {
	if w, err = a.PrepareUpdate(ctx, in); err != nil {
		return w, err
	}
	if w.catalogue == nil && in.Priced() { // so the id is well-formed
		id, err := ids.Parse[ids.PackagePrefix](*in.PackageID.Pointer())
		if err != nil {
			return w, err
		}
		price, err := a.Bookings.Price(ctx, id, *in.EventDate.Pointer(), in.GuestCount())
		if err != nil {
			return w, err
		}
		w.price = &price
	}
	if in.NeedsDefaults() {
		w.taxes = newTaxDefaults(ctx, a.Tenants, a.Catalogue)
	}
	w.number, err = a.Numbers.Next(ctx)
	return w, err
}

// PrepareUpdate checks with bookings that the ids exist. It requests the tenant's default taxes if they can apply.
func (a *Quotes) PrepareUpdate(ctx context.Context, in domain.QuoteInput) (QuoteWrite, error) {
	w := QuoteWrite{QuoteInput: in, catalogue: a.Catalogue.Check(ctx, quoteReferences(in))}
	if in.Untaxed() {
		w.taxes = newTaxDefaults(ctx, a.Tenants, a.Catalogue)
	}
	return w, nil
}

// quoteReferences returns the ids of catalogue items that an input names.
func quoteReferences(in domain.QuoteInput) []Reference {
	var out []Reference
	for _, f := range []struct {
		name string
		id   patch.Field[string]
	}{{"service_id", in.ServiceID}, {"unit_id", in.UnitID}, {"package_id", in.PackageID}} {
		if text := f.id.Pointer(); text != nil {
			out = append(out, Reference{Field: f.name, ID: *text})
		}
	}
	return out
}

// Create drafts a quote.
func (a *Quotes) Create(ctx context.Context, tx pg.Tx, w QuoteWrite) (domain.Quote, error) {
	c := caller.FromContext(ctx)
	loc, err := civil.Location(c.Timezone)
	if err != nil {
		return domain.Quote{}, err
	}
	zero := money.Amount{Currency: c.Currency}
	blank := domain.Quote{
		ID: domain.NewQuoteID(), Number: w.number, Loc: loc, Totals: domain.Sum(nil, domain.NoTerms(c.Currency), nil), Deposit: zero,
	}
	refs, err := quoteRefs(ctx, tx, w)
	if err != nil {
		return domain.Quote{}, err
	}
	switch {
	case !w.NeedsDefaults() || refs.Catalogue != nil:
	case w.price != nil:
		refs.Defaults = w.price.Defaults
	default:
		service, pkg := blank.Sold(w.QuoteInput)
		if refs.Defaults, err = w.taxes.of(ctx, tx, service, pkg); err != nil {
			return domain.Quote{}, err
		}
	}
	q, err := domain.NewQuote(w.QuoteInput, refs, blank, a.now(ctx))
	if err != nil {
		return domain.Quote{}, err
	}
	if q, err = store.InsertQuote(ctx, tx, q); err != nil {
		return domain.Quote{}, err
	}
	body, err := outbox.Body(ctx, view.Quote, q)
	if err != nil {
		return domain.Quote{}, err
	}
	return q, outbox.Emit(ctx, tx, a.Wake, quoteCreated(q, body))
}

// quoteRefs looks up the customer and the lead that an input names.
func quoteRefs(ctx context.Context, tx pg.Tx, w QuoteWrite) (refs domain.QuoteRefs, err error) {
	refs.Catalogue, refs.Price = w.catalogue, w.price
	if text := w.CustomerID.Pointer(); text != nil {
		if id, malformed := ids.Parse[ids.CustomerPrefix](*text); malformed == nil {
			c, err := referencedCustomer(ctx, tx, id)
			if err != nil {
				return refs, err
			}
			refs.Customer = c != nil
		}
	}
	if text := w.LeadID.Pointer(); text != nil {
		if id, malformed := ids.Parse[ids.LeadPrefix](*text); malformed == nil {
			refs.Lead, err = store.LeadExists(ctx, tx, id)
		}
	}
	return refs, err
}

// Update changes the given fields. A change that is not visible creates no new version and no event.
func (a *Quotes) Update(ctx context.Context, tx pg.Tx, id domain.QuoteID, w QuoteWrite, match patch.Precondition) (domain.Quote, error) {
	return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
		refs, err := quoteRefs(ctx, tx, w)
		if err != nil {
			return domain.Quote{}, err
		}
		if w.Untaxed() && refs.Catalogue == nil && current.Status == domain.QuoteDraft {
			service, pkg := current.Sold(w.QuoteInput)
			if refs.Defaults, err = w.taxes.of(ctx, tx, service, pkg); err != nil {
				return domain.Quote{}, err
			}
		}
		return current.Change(w.QuoteInput, refs, a.now(ctx))
	})
}

// Send sets a draft to sent, and its lead to quoted.
func (a *Quotes) Send(ctx context.Context, tx pg.Tx, id domain.QuoteID, match patch.Precondition) (domain.Quote, error) {
	return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
		next, err := current.Send(a.now(ctx))
		if err != nil || current.Status == domain.QuoteSent {
			return next, err
		}
		return next, a.sent(ctx, tx, next)
	})
}

// Decline sets a sent quote to declined. It waits while the quote is being accepted.
func (a *Quotes) Decline(ctx context.Context, tx pg.Tx, id domain.QuoteID, reason *string, match patch.Precondition) (domain.Quote, error) {
	return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
		if current.Accepting.UnderWay() {
			return domain.Quote{}, errAccepting
		}
		return current.Decline(reason, a.now(ctx))
	})
}

// Cancel sets a draft or sent quote to cancelled. It waits while the quote is being accepted.
func (a *Quotes) Cancel(ctx context.Context, tx pg.Tx, id domain.QuoteID, match patch.Precondition) (domain.Quote, error) {
	return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
		if current.Accepting.UnderWay() {
			return domain.Quote{}, errAccepting
		}
		return current.Cancel(a.now(ctx))
	})
}

// Delete deletes a draft. It erases the copies of the draft, because a later erasure of the customer would not find them.
func (a *Quotes) Delete(ctx context.Context, tx pg.Tx, id domain.QuoteID, match patch.Precondition) error {
	current, err := store.QuoteForUpdate(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := match.Check(current.At(a.now(ctx)).Version); err != nil {
		return err
	}
	if current.Status != domain.QuoteDraft {
		return domain.NotDraft("quote", string(current.At(a.now(ctx)).Status))
	}
	if err := store.DeleteQuote(ctx, tx, id); err != nil {
		return err
	}
	return a.Customers.eraseCopies(ctx, tx, ownedQuotes, []store.Erased{{ID: id.UUID(), Version: current.Version + 1}})
}

// change locks a quote, writes its expiry if it has expired, and writes the result of a change with its event.
func (a *Quotes) change(
	ctx context.Context, tx pg.Tx, id domain.QuoteID, match patch.Precondition, to func(domain.Quote) (domain.Quote, error),
) (domain.Quote, error) {
	current, err := store.QuoteForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Quote{}, err
	}
	if now := a.now(ctx); current.Lapsed(now) { // after the lock: the quote may have lapsed while we waited
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return domain.Quote{}, err
		}
	}
	next, err := to(current)
	if broken := match.Check(current.Version); broken != nil && (current.Status != domain.QuoteDraft || err == nil || errors.Is(err, domain.ErrTransition)) {
		return domain.Quote{}, broken // after errors on fields, before errors about the state
	}
	if err != nil {
		return domain.Quote{}, err
	}
	return a.save(ctx, tx, current, next)
}

// expire writes the expiry that every reader of an expired quote already sees, with its event.
func (a *Quotes) expire(ctx context.Context, tx pg.Tx, q domain.Quote, now time.Time) (domain.Quote, error) {
	return a.save(ctx, tx, q, q.At(now))
}

// save writes the changed quote with its event, if the change is visible.
func (a *Quotes) save(ctx context.Context, tx pg.Tx, current, next domain.Quote) (domain.Quote, error) {
	previous, err := outbox.Previous(ctx, view.Quote, current, next)
	if err != nil || string(previous) == "{}" {
		return current, err
	}
	saved, err := store.UpdateQuote(ctx, tx, next)
	if err != nil {
		return domain.Quote{}, err
	}
	body, err := outbox.Body(ctx, view.Quote, saved)
	if err != nil {
		return domain.Quote{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Wake, quoteUpdated(saved, body, previous))
}

// sent moves the lead of a sent quote to quoted, and stores the clock by which the quote expires.
func (a *Quotes) sent(ctx context.Context, tx pg.Tx, q domain.Quote) error {
	if err := testclock.Save(ctx, tx); err != nil || q.LeadID.IsZero() {
		return err
	}
	return a.Leads.Quoted(ctx, tx, q.LeadID)
}

func (a *Quotes) now(ctx context.Context) time.Time {
	return caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
}
