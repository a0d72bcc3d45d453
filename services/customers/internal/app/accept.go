package app

import (
	"context"
	"errors"

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
	in, err := o.quote.Booking(validUntil(o.quote.Accepting.Lease, o.Now()))
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

// takeOver takes over the accept, unless it has ended or another process holds it.
func (o *accept) takeOver(ctx context.Context, tx pg.Tx) error {
	q, _, ok, err := store.LockFreeQuote(ctx, tx, o.id)
	if err != nil {
		return err
	}
	now := o.Now()
	if !ok || !q.Accepting.UnderWay() || now.Before(*q.Accepting.Next) {
		return errAccepting
	}
	q.Accepting = q.Accepting.Begin(now, "", "")
	o.quote = q
	store.SaveAccepting(tx, q)
	return nil
}

func (o *accept) began() (request, actor string) {
	return o.quote.Accepting.Request, o.quote.Accepting.Actor
}

// repeat requests the booking from bookings, which creates it or returns the one that exists.
func (o *accept) repeat(ctx context.Context) (err error) {
	if o.info, err = o.Tenants.Invoicing(ctx); err != nil {
		return err
	}
	return o.Call(ctx)
}
