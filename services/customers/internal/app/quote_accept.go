package app

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

const (
	// bookWithin is how long the request for a booking is valid; domain's lease of an accept is longer.
	bookWithin = 10 * time.Second
	// acceptPoll is how often a request looks whether another one's accept has ended.
	acceptPoll = 50 * time.Millisecond
)

// errAccepting says that another request, or a completer, has the accept of the quote.
var errAccepting = errors.New("the quote is being accepted")

// Accept makes the booking of a sent quote and opens its invoice, or does nothing, whatever dies on the way: the quote is
// marked, the booking is made by bookings, once for ever, and the rest is one transaction. What a dead process leaves is
// resumed by QuoteCompleter. The caller has looked for the stored answer of its key.
func (a *Quotes) Accept(ctx context.Context, transact pg.Transact[domain.Quote], id domain.QuoteID, match patch.Precondition) error {
	info, unknown := a.Tenants.Invoicing(ctx)
	return a.patiently(ctx, func() error {
		q, err := a.beginAccept(ctx, id, match, unknown)
		if err != nil {
			return err
		}
		if q.Status == domain.QuoteAccepted {
			return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Quote, error) { return store.Quote(ctx, tx, id) })
		}
		return a.bookQuote(ctx, transact, q, info)
	})
}

// patiently repeats an attempt while another request accepts the quote; apperr.ErrInProgress when that takes too long.
func (a *Quotes) patiently(ctx context.Context, attempt func() error) error {
	for until := time.Now().Add(a.Patience); ; {
		err := attempt()
		if !errors.Is(err, errAccepting) {
			return err
		}
		if time.Now().After(until) {
			return apperr.ErrInProgress.WithMessage("The quote is being accepted. Retry shortly.").WithCause(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(acceptPoll):
		}
	}
}

// beginAccept marks the quote as being accepted, which decides: from now on it does not expire, and no other request can use
// the caller's key. It returns an accepted quote as it is. unknown is why the accept could not be ended.
func (a *Quotes) beginAccept(ctx context.Context, id domain.QuoteID, match patch.Precondition, unknown error) (q domain.Quote, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, _, err := a.Replies.Claim(ctx, tx); err != nil {
			return err
		}
		current, err := store.QuoteForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		q = current.At(a.now(ctx))
		if err := match.Check(q.Version); err != nil || q.Status == domain.QuoteAccepted {
			return err
		}
		real := a.Now()
		if q.Accepting.Leased(real) {
			return errAccepting
		}
		if _, err := q.Status.Next(domain.AcceptQuote); err != nil {
			return err
		}
		if unknown != nil {
			return unknown
		}
		c := caller.FromContext(ctx)
		q.Accepting = q.Accepting.Begin(real, c.RequestID, c.Actor())
		store.SaveAccepting(tx, q)
		return nil
	})
	return q, err
}

// bookQuote makes the booking of a quote whose accept this process has, and ends the accept. A refusal ends it too, and is
// answered as it came; without a clear answer of bookings the accept stays under way.
func (a *Quotes) bookQuote(ctx context.Context, transact pg.Transact[domain.Quote], q domain.Quote, info domain.Invoicing) error {
	failpoint.Here("accept.marked")
	in, err := q.Booking(a.Now().Add(bookWithin))
	if err != nil {
		return err
	}
	b, err := a.Bookings.Create(ctx, in)
	if refused(err) {
		if failed := a.takeBack(ctx, q); failed != nil {
			return failed
		}
		return err
	}
	if err != nil {
		return err
	}
	failpoint.Here("accept.booked")
	err = transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Quote, error) { return a.accept(ctx, tx, q, b, info) })
	failpoint.Here("accept.committed")
	var lost *domain.LostError
	if errors.As(err, &lost) {
		if failed := a.takeBack(ctx, q); failed != nil {
			return failed
		}
		return lost.Answer()
	}
	return err
}

// notLost is an error for a booking that was cancelled or has expired, by what bookings has answered or by an event since.
func notLost(ctx context.Context, tx pg.Tx, b domain.Booking) error {
	known, err := store.Booking(ctx, tx, b.ID)
	if err != nil && !errors.Is(err, domain.ErrBookingNotFound) {
		return err
	}
	for _, one := range []domain.Booking{b, known} {
		if one.Lost() {
			return &domain.LostError{Booking: domain.Booking{ID: b.ID, Status: one.Status}}
		}
	}
	return nil
}

// lockAccept locks a quote whose accept this process has begun; errAccepting when another attempt has followed.
func lockAccept(ctx context.Context, tx pg.Tx, q domain.Quote) (domain.Quote, error) {
	current, err := store.QuoteForUpdate(ctx, tx, q.ID)
	if err != nil {
		return domain.Quote{}, err
	}
	if current.Status == domain.QuoteAccepted {
		return current, nil
	}
	if !current.Accepting.UnderWay() || current.Accepting.Attempt != q.Accepting.Attempt {
		return domain.Quote{}, errAccepting
	}
	return current, nil
}

// takeBack ends an accept without effect: the quote is plainly sent again.
func (a *Quotes) takeBack(ctx context.Context, q domain.Quote) error {
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := a.Replies.Release(ctx, tx); err != nil { // before the quote is locked, as in beginAccept
			return err
		}
		current, err := lockAccept(ctx, tx, q)
		if err != nil {
			return err
		}
		if current.Status == domain.QuoteAccepted {
			return errAccepting // look again
		}
		current.Accepting = current.Accepting.End()
		store.SaveAccepting(tx, current)
		return nil
	})
}

// accept ends an accept: the quote is accepted, its invoice opened, and both are told.
func (a *Quotes) accept(ctx context.Context, tx pg.Tx, q domain.Quote, b domain.Booking, info domain.Invoicing) (domain.Quote, error) {
	current, err := lockAccept(ctx, tx, q)
	if err != nil || current.Status == domain.QuoteAccepted {
		return current, err
	}
	if err := notLost(ctx, tx, b); err != nil {
		return domain.Quote{}, err
	}
	wanted, err := current.Accept(b, a.now(ctx))
	if err != nil {
		return domain.Quote{}, err
	}
	before, err := renderQuote(ctx, current)
	if err != nil {
		return domain.Quote{}, err
	}
	saved, err := store.UpdateQuote(ctx, tx, wanted)
	if err != nil {
		return domain.Quote{}, err
	}
	invoice, err := a.Invoices.OpenForQuote(ctx, tx, saved.InvoiceSource(), b, info)
	if err != nil {
		return domain.Quote{}, err
	}
	saved.InvoiceIDs = append(saved.InvoiceIDs, invoice)
	body, err := renderQuote(ctx, saved)
	if err != nil {
		return domain.Quote{}, err
	}
	err = emit(ctx, tx, a.Wake, quoteAccepted(saved, body, outbox.Diff(before, body)))
	failpoint.Here("accept.written")
	return saved, err
}

// sent tells the lead of a quote that is sent, and keeps the clock by which it expires.
func (a *Quotes) sent(ctx context.Context, tx pg.Tx, q domain.Quote) error {
	if err := testclock.Save(ctx, tx); err != nil || q.LeadID.IsZero() {
		return err
	}
	return a.Leads.Quoted(ctx, tx, q.LeadID)
}
