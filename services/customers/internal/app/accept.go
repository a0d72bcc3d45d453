package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// bookWithin is how long the request for a booking is valid; domain's lease of an accept is longer.
const bookWithin = 10 * time.Second

// errAccepting reports that another request or a completer is accepting the quote.
var errAccepting = &operation.UnderWay{Err: apperr.ErrInProgress.WithMessage("The quote is being accepted. Retry shortly.")}

// accept creates the booking of a sent quote and opens its invoice, or has no effect. Begin marks the quote, Call requests the
// booking from bookings, which creates it only once, and Finish writes the rest.
type accept struct {
	*Quotes

	id      domain.QuoteID
	match   patch.Precondition
	info    domain.Invoicing
	unknown error // why info is not known
	quote   domain.Quote
	booking domain.Booking
}

// Accept returns the operation that accepts a sent quote.
func (a *Quotes) Accept(ctx context.Context, id domain.QuoteID, match patch.Precondition) operation.Operation[domain.Quote] {
	info, unknown := a.Tenants.Invoicing(ctx)
	return &accept{Quotes: a, id: id, match: match, info: info, unknown: unknown}
}

// Name implements operation.Operation.
func (o *accept) Name() string { return o.quote.ID.String() }

// Begin marks the quote as being accepted. From then on it cannot expire. If the quote is already accepted, nothing is left to do.
func (o *accept) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	current, err := store.QuoteForUpdate(ctx, tx, o.id)
	if err != nil {
		return false, err
	}
	q := current.At(o.now(ctx))
	o.quote = q
	if err := o.match.Check(q.Version); err != nil || q.Status == domain.QuoteAccepted {
		return true, err
	}
	real := o.Now()
	if q.Accepting.Held(real) {
		return false, errAccepting
	}
	if _, err := q.Status.Next(domain.AcceptQuote); err != nil {
		return false, err
	}
	if o.unknown != nil {
		return false, o.unknown
	}
	c := caller.FromContext(ctx)
	o.quote.Accepting = q.Accepting.Begin(real, c.RequestID, c.Actor())
	store.SaveAccepting(tx, o.quote)
	return false, nil
}

// Call requests the booking from bookings. It returns a refusal of bookings unchanged.
func (o *accept) Call(ctx context.Context) error {
	failpoint.Here("accept.marked")
	in, err := o.quote.Booking(o.Now().Add(bookWithin))
	if err != nil {
		return err
	}
	if o.booking, err = o.Bookings.Create(ctx, in); operation.Refused(err) {
		return &operation.RefusedError{Err: err}
	}
	if err == nil {
		failpoint.Here("accept.booked")
	}
	return err
}

// Finish sets the quote to accepted and opens its invoice.
func (o *accept) Finish(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
	current, err := o.lock(ctx, tx)
	if err != nil || current.Status == domain.QuoteAccepted {
		return current, err
	}
	if err := notLost(ctx, tx, o.booking); err != nil {
		return domain.Quote{}, err
	}
	next, err := current.Accept(o.booking, o.now(ctx))
	if err != nil {
		return domain.Quote{}, err
	}
	before, err := outbox.Body(ctx, view.Quote, current)
	if err != nil {
		return domain.Quote{}, err
	}
	saved, err := store.UpdateQuote(ctx, tx, next)
	if err != nil {
		return domain.Quote{}, err
	}
	invoice, err := o.Invoices.OpenForQuote(ctx, tx, saved.InvoiceSource(), o.booking, o.info)
	if err != nil {
		return domain.Quote{}, err
	}
	saved.InvoiceIDs = append(saved.InvoiceIDs, invoice)
	body, err := outbox.Body(ctx, view.Quote, saved)
	if err != nil {
		return domain.Quote{}, err
	}
	err = outbox.Emit(ctx, tx, o.Wake, quoteAccepted(saved, body, outbox.Diff(before, body)))
	failpoint.Here("accept.written")
	tx.AfterCommit(func() { failpoint.Here("accept.committed") })
	return saved, err
}

// Release ends the accept without effect: the quote is in the status sent as before.
func (o *accept) Release(ctx context.Context, tx pg.Tx) error {
	current, err := o.lock(ctx, tx)
	if err != nil {
		return err
	}
	if current.Status == domain.QuoteAccepted {
		return errAccepting // read it again
	}
	current.Accepting = current.Accepting.End()
	store.SaveAccepting(tx, current)
	return nil
}

// lock locks a quote that is accepted or that this attempt is accepting. It returns errAccepting if another attempt has taken over.
func (o *accept) lock(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
	current, err := store.QuoteForUpdate(ctx, tx, o.id)
	if err != nil || current.Status == domain.QuoteAccepted {
		return current, err
	}
	if !current.Accepting.Is(o.quote.Accepting.Lease) {
		return domain.Quote{}, errAccepting
	}
	return current, nil
}

// notLost refuses a canceled or expired booking, according to the response of bookings or a later event.
func notLost(ctx context.Context, tx pg.Tx, b domain.Booking) error {
	known, err := store.Booking(ctx, tx, b.ID)
	if err != nil && !errors.Is(err, domain.ErrBookingNotFound) {
		return err
	}
	for _, one := range []domain.Booking{b, known} {
		if one.Lost() {
			return &operation.RefusedError{Err: domain.Lost(b.ID, one.Status)}
		}
	}
	return nil
}

// leftAccept is an accept that a process has abandoned. A worker resumes it on behalf of the caller who began it.
type leftAccept struct {
	accept

	acting caller.Caller
}

// Begin takes over the accept, unless it has ended or another process holds it.
func (o *leftAccept) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	q, _, ok, err := store.LockFreeQuote(ctx, tx, o.id)
	if err != nil {
		return false, err
	}
	now := o.Now()
	if !ok || !q.Accepting.UnderWay() || now.Before(*q.Accepting.Next) {
		return false, errAccepting
	}
	q.Accepting = q.Accepting.Begin(now, "", "")
	o.quote = q
	store.SaveAccepting(tx, q)
	return false, nil
}

// Call requests the booking from bookings, which creates it or returns the one that exists.
func (o *leftAccept) Call(ctx context.Context) (err error) {
	c := caller.FromContext(ctx)
	if o.acting, err = o.Tenants.Acting(ctx, c.Tenant, c.Mode); err != nil {
		return err
	}
	o.acting.RequestID, o.acting.OnBehalfOf = o.quote.Accepting.Request, o.quote.Accepting.Actor
	ctx = caller.With(ctx, o.acting)
	if o.info, err = o.Tenants.Invoicing(ctx); err != nil {
		return err
	}
	return o.accept.Call(ctx)
}

// Finish writes the result.
func (o *leftAccept) Finish(ctx context.Context, tx pg.Tx) (domain.Quote, error) {
	return o.accept.Finish(caller.With(ctx, o.acting), tx)
}

// Release ends the accept without effect.
func (o *leftAccept) Release(ctx context.Context, tx pg.Tx) error {
	return o.accept.Release(caller.With(ctx, o.acting), tx)
}

// QuoteCompleter resumes the accepts that a process has abandoned. Afterwards, the quote is either accepted or in the status sent
// as before. Any number of processes may run it at the same time.
type QuoteCompleter struct {
	Quotes     *Quotes
	Operations operation.Runner
	Worker     *pg.DB // worker role: finds abandoned accepts
	Log        *slog.Logger

	failing operation.Failing
}

// Run resumes abandoned accepts of all tenants. After a failure, it retries the accept after a delay that doubles each time.
func (a *QuoteCompleter) Run(ctx context.Context) error {
	left := operation.Workers[store.QuoteLeft]{
		Service: "customers", DB: a.Worker, Now: a.Quotes.Now, Find: store.QuotesLeft,
		Owner: func(row store.QuoteLeft) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.QuoteLeft) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("quote %s: %w", row.ID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "accepts of quotes that cannot be completed"),
	}
	return left.Run(ctx)
}

// complete runs the next attempt at one accept.
func (a *QuoteCompleter) complete(ctx context.Context, id domain.QuoteID) error {
	return operation.Resume(ctx, a.Operations, &leftAccept{accept: accept{Quotes: a.Quotes, id: id, quote: domain.Quote{ID: id}}})
}
