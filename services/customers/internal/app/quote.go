package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// InvoiceOpener opens the invoice of an accepted quote, with its number and its event, in the transaction that accepts it.
type InvoiceOpener interface {
	OpenForQuote(ctx context.Context, tx pg.Tx, q domain.InvoiceSource, b domain.Booking, info domain.Invoicing) (domain.InvoiceID, error)
}

// LeadQuoter tells a lead that a quote for it was sent, in the transaction that sends it.
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
	Numbers   *numbers.Numbers
	Replies   Replies
	// Wake tells the relay that an event has been committed.
	Wake func()
	// Now returns real time; a caller's test clock is read from the caller.
	Now func() time.Time
	// Patience is how long a request waits for an accept that another one has begun.
	Patience time.Duration
}

// asked is what was asked of other services before the transaction. Its error is answered inside the transaction, after the
// look at the idempotency record: an earlier success with the same key outranks it.
type asked struct {
	catalogue error
	price     *domain.PackagePrice
	number    string
	err       error
}

// Create drafts a quote.
func (a *Quotes) Create(ctx context.Context, transact pg.Transact[domain.Quote], in domain.QuoteInput) error {
	pre := a.ask(ctx, in)
	if pre.err == nil {
		pre.number, pre.err = a.Numbers.Next(ctx)
	}
	return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
		if pre.err != nil {
			return domain.Quote{}, pre.err
		}
		return a.create(ctx, tx, in, pre)
	})
}

// ask asks for what a new quote needs of bookings: whether its ids exist, and a price where the package makes its line.
func (a *Quotes) ask(ctx context.Context, in domain.QuoteInput) (pre asked) {
	pre.catalogue = a.Catalogue.Check(ctx, quoteReferences(in))
	if pre.catalogue != nil || !in.Priced() {
		return pre
	}
	id, err := ids.Parse[ids.PackagePrefix](*in.PackageID.Pointer())
	if err != nil {
		return pre // the catalogue has refused it
	}
	price, err := a.Bookings.Price(ctx, id, *in.EventDate.Pointer())
	if err != nil {
		pre.err = err
		return pre
	}
	pre.price = &price
	return pre
}

// quoteReferences are the ids of the catalogue that an input names.
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

func (a *Quotes) create(ctx context.Context, tx pg.Tx, in domain.QuoteInput, pre asked) (domain.Quote, error) {
	c := caller.FromContext(ctx)
	loc, err := civil.Location(c.Timezone)
	if err != nil {
		return domain.Quote{}, err
	}
	zero := money.Amount{Currency: c.Currency}
	blank := domain.Quote{
		ID: domain.NewQuoteID(), Number: pre.number, Loc: loc, Totals: domain.Totals{Subtotal: zero, Discount: zero, Tax: zero, Total: zero}, Deposit: zero,
	}
	refs, err := quoteRefs(ctx, tx, in, pre)
	if err != nil {
		return domain.Quote{}, err
	}
	q, err := domain.NewQuote(in, refs, blank, a.now(ctx))
	if err != nil {
		return domain.Quote{}, err
	}
	if q, err = store.InsertQuote(ctx, tx, q); err != nil {
		return domain.Quote{}, err
	}
	body, err := renderQuote(ctx, q)
	if err != nil {
		return domain.Quote{}, err
	}
	return q, emit(ctx, tx, a.Wake, quoteCreated(q, body))
}

// quoteRefs looks for the customer and the lead that an input names.
func quoteRefs(ctx context.Context, tx pg.Tx, in domain.QuoteInput, pre asked) (refs domain.QuoteRefs, err error) {
	refs.Catalogue, refs.Price = pre.catalogue, pre.price
	if text := in.CustomerID.Pointer(); text != nil {
		if id, malformed := ids.Parse[ids.CustomerPrefix](*text); malformed == nil {
			c, err := referencedCustomer(ctx, tx, id)
			if err != nil {
				return refs, err
			}
			refs.Customer = c != nil
		}
	}
	if text := in.LeadID.Pointer(); text != nil {
		if id, malformed := ids.Parse[ids.LeadPrefix](*text); malformed == nil {
			refs.Lead, err = store.LeadExists(ctx, tx, id)
		}
	}
	return refs, err
}

// Update changes the given fields. A change that is not visible makes no new version and no event.
func (a *Quotes) Update(
	ctx context.Context, transact pg.Transact[domain.Quote], id domain.QuoteID, in domain.QuoteInput, match patch.Precondition,
) error {
	pre := asked{catalogue: a.Catalogue.Check(ctx, quoteReferences(in))}
	return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
		return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
			refs, err := quoteRefs(ctx, tx, in, pre)
			if err != nil {
				return domain.Quote{}, err
			}
			return current.Change(in, refs, a.now(ctx))
		})
	})
}

// Send makes a draft sent, and its lead quoted.
func (a *Quotes) Send(ctx context.Context, transact pg.Transact[domain.Quote], id domain.QuoteID, match patch.Precondition) error {
	return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
		return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
			wanted, err := current.Send(a.now(ctx))
			if err != nil || current.Status == domain.QuoteSent {
				return wanted, err
			}
			return wanted, a.sent(ctx, tx, wanted)
		})
	})
}

// Decline makes a sent quote declined. It waits while the quote is being accepted.
func (a *Quotes) Decline(
	ctx context.Context, transact pg.Transact[domain.Quote], id domain.QuoteID, reason *string, match patch.Precondition,
) error {
	return a.end(ctx, transact, id, match, func(q domain.Quote) (domain.Quote, error) { return q.Decline(reason, a.now(ctx)) })
}

// Cancel makes a draft or a sent quote cancelled. It waits while the quote is being accepted.
func (a *Quotes) Cancel(ctx context.Context, transact pg.Transact[domain.Quote], id domain.QuoteID, match patch.Precondition) error {
	return a.end(ctx, transact, id, match, func(q domain.Quote) (domain.Quote, error) { return q.Cancel(a.now(ctx)) })
}

// end makes a change that an accept under way does not allow.
func (a *Quotes) end(
	ctx context.Context, transact pg.Transact[domain.Quote], id domain.QuoteID, match patch.Precondition,
	to func(domain.Quote) (domain.Quote, error),
) error {
	return a.patiently(ctx, func() error {
		return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
			return a.change(ctx, tx, id, match, func(current domain.Quote) (domain.Quote, error) {
				if current.Accepting.UnderWay() {
					return domain.Quote{}, errAccepting
				}
				return to(current)
			})
		})
	})
}

// change locks a quote, writes that it has expired where it has, and what a change makes of it, with its event.
func (a *Quotes) change(
	ctx context.Context, tx pg.Tx, id domain.QuoteID, match patch.Precondition, to func(domain.Quote) (domain.Quote, error),
) (domain.Quote, error) {
	current, err := store.QuoteForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Quote{}, err
	}
	if now := a.now(ctx); current.Lapsed(now) { // not before the lock: it may have lapsed while we waited
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return domain.Quote{}, err
		}
	}
	wanted, err := to(current)
	if broken := match.Check(current.Version); broken != nil && (current.Status != domain.QuoteDraft || err == nil || errors.Is(err, domain.ErrTransition)) {
		return domain.Quote{}, broken // after errors on fields, before those of the state
	}
	if err != nil {
		return domain.Quote{}, err
	}
	return a.save(ctx, tx, current, wanted)
}

// expire writes what every reader already sees of a quote that has expired, with its event.
func (a *Quotes) expire(ctx context.Context, tx pg.Tx, q domain.Quote, now time.Time) (domain.Quote, error) {
	return a.save(ctx, tx, q, q.At(now))
}

// save writes what a change has made of a quote, with its event. A change that shows nothing is none.
func (a *Quotes) save(ctx context.Context, tx pg.Tx, current, wanted domain.Quote) (domain.Quote, error) {
	before, err := renderQuote(ctx, current)
	if err != nil {
		return domain.Quote{}, err
	}
	after, err := renderQuote(ctx, wanted)
	if err != nil {
		return domain.Quote{}, err
	}
	previous := outbox.Diff(before, after)
	if string(previous) == "{}" {
		return current, nil
	}
	saved, err := store.UpdateQuote(ctx, tx, wanted)
	if err != nil {
		return domain.Quote{}, err
	}
	if after, err = renderQuote(ctx, saved); err != nil {
		return domain.Quote{}, err
	}
	return saved, emit(ctx, tx, a.Wake, quoteUpdated(saved, after, previous))
}

func (a *Quotes) now(ctx context.Context) time.Time {
	return caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
}

func renderQuote(ctx context.Context, q domain.Quote) (json.RawMessage, error) {
	return contract.Encode(view.Quote(q, api.Mode(caller.FromContext(ctx).Mode)))
}
