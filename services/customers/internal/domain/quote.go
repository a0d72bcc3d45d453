package domain

import (
	"encoding/json"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/money"
)

// ErrQuoteNotFound is the response for an id that is unknown, malformed or of another tenant.
var ErrQuoteNotFound = apperr.New(apperr.NotFound, "quote_not_found", "Quote not found.")

// quoteDays is after how many whole days a sent quote expires if it specifies no time.
const quoteDays = 14

// QuoteStatus is the state of a quote.
type QuoteStatus string

// The states of a quote; all but draft and sent are final.
const (
	QuoteDraft     QuoteStatus = "draft"
	QuoteSent      QuoteStatus = "sent"
	QuoteAccepted  QuoteStatus = "accepted"
	QuoteDeclined  QuoteStatus = "declined"
	QuoteExpired   QuoteStatus = "expired"
	QuoteCancelled QuoteStatus = "cancelled"
)

// QuoteAction moves a quote from one state to another.
type QuoteAction string

// The actions on a quote. No client can expire one.
const (
	SendQuote    QuoteAction = "send"
	AcceptQuote  QuoteAction = "accept"
	DeclineQuote QuoteAction = "decline"
	ExpireQuote  QuoteAction = "expire"
	CancelQuote  QuoteAction = "cancel"
)

var quoteTransitions = map[QuoteStatus]map[QuoteAction]QuoteStatus{
	QuoteDraft:     {SendQuote: QuoteSent, CancelQuote: QuoteCancelled},
	QuoteSent:      {AcceptQuote: QuoteAccepted, DeclineQuote: QuoteDeclined, ExpireQuote: QuoteExpired, CancelQuote: QuoteCancelled},
	QuoteAccepted:  {},
	QuoteDeclined:  {},
	QuoteExpired:   {},
	QuoteCancelled: {},
}

// Next returns the state after the action, or an error if the state does not allow it.
func (s QuoteStatus) Next(a QuoteAction) (QuoteStatus, error) {
	if to, ok := quoteTransitions[s][a]; ok {
		return to, nil
	}
	return s, ErrTransition.WithMessage("A quote that is %s does not allow this. Possible actions: %s.", s, s.actions()).WithField("status")
}

// Final reports whether no action leads out of the state.
func (s QuoteStatus) Final() bool { return len(quoteTransitions[s]) == 0 }

// actions lists what a client can do in the state.
func (s QuoteStatus) actions() string {
	var out []string
	for _, a := range []QuoteAction{SendQuote, AcceptQuote, DeclineQuote, CancelQuote} {
		if _, ok := quoteTransitions[s][a]; ok {
			out = append(out, string(a))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// Quote is an offer to a customer, which becomes a booking and an invoice. Absent ids are zero, absent values nil.
type Quote struct {
	Totals
	QuoteEvent
	ID            QuoteID
	Number        string
	Status        QuoteStatus
	Version       int64
	CustomerID    CustomerID
	LeadID        LeadID
	ServiceID     ServiceID
	UnitID        UnitID
	PackageID     PackageID
	Guests        int            // passed to the booking
	Loc           *time.Location // the operator's when the quote was created; all local times of the quote are in it
	Lines         []Line
	Deposit       money.Amount
	ExpiresAt     *time.Time
	SentAt        *time.Time
	AcceptedAt    *time.Time
	DeclinedAt    *time.Time
	CancelledAt   *time.Time
	BookingID     BookingID
	DeclineReason *string
	Notes         *string
	Terms         *string
	Metadata      json.RawMessage // as sent; nil: empty
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Accepting     Accepting

	BookingStatus *string     // looked up: it changes independently of the quote
	InvoiceIDs    []InvoiceID // looked up, the oldest first
}

// QuoteEvent is the time of a quote's event. Start is nil for a whole day. End is nil if it follows from a duration.
type QuoteEvent struct {
	Day        *civil.Date
	EventAt    *time.Time // the instant given for the day; nil: the first instant of the day
	Start, End *civil.Clock
}

// Accepting is an accept in progress. Readers do not see it.
type Accepting struct {
	lease.Lease

	Next    *time.Time // real time from which a completer resumes it
	Request string     // id of the request that began it
	Actor   string     // the credential that requested it
}

// Lease is how long a process exclusively holds an accept, or the first attempt at a conversion. It is longer than the validity of
// the request to bookings. The next attempt therefore either finds the result of the previous request, or that request can no
// longer have an effect.
const Lease = 30 * time.Second

// maxBackoff bounds the pause between a completer's attempts at an accept.
const maxBackoff = 5 * time.Minute

// Begin returns the next attempt. It keeps the request and the actor of the first one.
func (a Accepting) Begin(real time.Time, request, actor string) Accepting {
	if !a.UnderWay() {
		a = Accepting{Lease: a.Lease, Request: request, Actor: actor}
	}
	backoff := a.backoff()
	a.Lease = a.Take(real, Lease)
	next := a.Until.Add(backoff)
	a.Next = &next
	return a
}

// backoff returns twice the previous delay between the end of the lease and the next attempt of a completer.
func (a Accepting) backoff() time.Duration {
	if !a.UnderWay() {
		return 0
	}
	return lease.Doubled(max(a.Next.Sub(*a.Until), time.Second/2), 1, maxBackoff)
}

// End returns the state without an accept in progress.
func (a Accepting) End() Accepting { return Accepting{Lease: a.Lease.End()} }

// NewQuoteID creates an id.
func NewQuoteID() QuoteID { return ids.New[ids.QuotePrefix]() }

// Lapsed reports whether a sent quote has expired. The start of an accept decides: a quote that is being accepted does not expire.
func (q Quote) Lapsed(now time.Time) bool {
	return q.Status == QuoteSent && !q.Accepting.UnderWay() && q.ExpiresAt != nil && !now.Before(*q.ExpiresAt)
}

// At returns the quote as every reader and writer sees it. A lapsed quote is expired and has the next version, whether or not its
// expiry is already written.
func (q Quote) At(now time.Time) Quote {
	if !q.Lapsed(now) {
		return q
	}
	q.Status = QuoteExpired
	q.Version++
	return q
}

// Send sets a draft to sent. A sent quote stays unchanged.
func (q Quote) Send(now time.Time) (Quote, error) {
	if q.Status == QuoteSent {
		return q, nil
	}
	next, err := q.Status.Next(SendQuote)
	if err != nil {
		return Quote{}, err
	}
	if q.Day == nil {
		return Quote{}, apperr.Field("event_date", "Is required for a sent quote.")
	}
	if q.ExpiresAt == nil {
		q.ExpiresAt = new(q.validUntil(now))
	}
	if !q.ExpiresAt.After(now) {
		return Quote{}, apperr.Field("expires_at", "Must be in the future.")
	}
	q.Status, q.SentAt = next, &now
	return q, nil
}

// validUntil returns when a quote that is sent now expires if it specifies no time: at the end of a day, at the latest of the one before
// the event. A quote for an event today is valid until the event begins or, without a time, until the end of the day. An event in the
// past limits nothing, so that it can be recorded.
func (q Quote) validUntil(now time.Time) time.Time {
	today := civil.DateOf(now.In(q.Loc))
	last := today.AddDays(quoteDays)
	switch {
	case today.Before(*q.Day) && !last.Before(*q.Day):
		last = q.Day.AddDays(-1)
	case *q.Day == today && q.Start != nil:
		if start, ok := q.Day.At(*q.Start, q.Loc); ok && start.After(now) {
			return start
		}
	case *q.Day == today:
		last = today
	}
	return last.End(q.Loc)
}

// Decline sets a sent quote to declined. A declined quote stays unchanged.
func (q Quote) Decline(reason *string, now time.Time) (Quote, error) {
	if q.Status == QuoteDeclined {
		return q, nil
	}
	next, err := q.Status.Next(DeclineQuote)
	if err != nil {
		return Quote{}, err
	}
	q.Status, q.DeclinedAt, q.DeclineReason = next, &now, reason
	return q, nil
}

// Cancel sets a draft or sent quote to cancelled. A cancelled quote stays unchanged.
func (q Quote) Cancel(now time.Time) (Quote, error) {
	if q.Status == QuoteCancelled {
		return q, nil
	}
	next, err := q.Status.Next(CancelQuote)
	if err != nil {
		return Quote{}, err
	}
	q.Status, q.CancelledAt = next, &now
	return q, nil
}

// Accept ends an accept in progress, after the booking has been created.
func (q Quote) Accept(b Booking, now time.Time) (Quote, error) {
	next, err := q.Status.Next(AcceptQuote)
	if err != nil {
		return Quote{}, err
	}
	q.Status, q.AcceptedAt, q.Accepting = next, &now, q.Accepting.End()
	q.BookingID, q.BookingStatus = b.ID, &b.Status
	return q, nil
}

// InvoiceSource returns the data of the invoice that accepting the quote opens.
func (q Quote) InvoiceSource() InvoiceSource {
	return InvoiceSource{
		Quote: q.ID, Lead: q.LeadID, Number: q.Number, Customer: q.CustomerID, Lines: q.Lines, Totals: q.Totals, Deposit: q.Deposit.Minor,
	}
}
