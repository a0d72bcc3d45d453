package domain

import (
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
)

// ErrEvent is the response to a webhook of the gateway that is not signed by the account's secret, or is too old.
var ErrEvent = apperr.New(apperr.BadRequest, "malformed_request", "The event has no valid signature of this account.")

// ErrAccountNotFound is the response to a webhook for an account that does not exist.
var ErrAccountNotFound = apperr.New(apperr.NotFound, "not_found", "No payment gateway account has this path.")

// Event is an event that the gateway has sent. Its content about an intent is not trusted: the intent is read again.
type Event struct {
	AccountID AccountID
	ID        string // evt_…
	Type      string
	Intent    GatewayID // "" when it is about none
	Refund    string    // re_…; "" when it is about none
	Tries     int

	ReceivedAt time.Time
	DueAt      *time.Time // when it is processed or retried; nil: it is processed
	Dropped    bool       // it is not stored
}

// ErrEventsWaiting is the response to a webhook of an account of which too many events wait; the gateway sends it again.
var ErrEventsWaiting = apperr.ErrUnavailable.WithMessage("Too many events of this account are pending. Send the event again later.")

const (
	// EventsWaiting limits how many unprocessed events an account can have.
	EventsWaiting = 10_000
	// EventsRetained limits how many processed events of an account are retained after each comparison of the account with the
	// gateway.
	EventsRetained = 100_000

	// eventPatience is how long to retry an event whose intent is not known here: it may arrive before the response to the
	// creation. Later it is not of this platform, as other programs may use the operator's account too.
	eventPatience = time.Hour
	// eventLease is longer than most reads of the gateway take. Where one takes longer, another process reads too, and the read that
	// has begun later counts.
	eventLease = 30 * time.Second
)

// OfRefund reports whether the refunds of the intent are to be read too.
func (e Event) OfRefund() bool { return strings.Contains(e.Type, "refund") }

// OfDispute reports whether the disputes of the intent are to be read too.
func (e Event) OfDispute() bool { return strings.HasPrefix(e.Type, "charge.dispute.") }

// RefundReadRequested is the event that this service leaves for itself when it knows what has become of a refund: its intent may have
// changed. id is the gateway's, or that of the allocation when the gateway has refused.
func RefundReadRequested(account AccountID, intent GatewayID, id string) Event {
	return Event{AccountID: account, ID: id, Type: "refund.asked", Intent: intent}
}

// Foreign reports whether an event whose intent is unknown does not belong to this platform.
func (e Event) Foreign(now time.Time) bool { return now.Sub(e.ReceivedAt) >= eventPatience }

// EventLease returns when another process may take an event that this process takes now.
func EventLease(now time.Time) time.Time { return now.Add(eventLease) }

// Again returns when to retry an event.
func (e Event) Again(now time.Time) time.Time {
	return now.Add(min(time.Second<<min(e.Tries, 10), 5*time.Minute))
}

const (
	eventLimit = 3 * 24 * time.Hour // then an event is given up: the gateway has stopped to repeat it too, and the reconciler reads
	eventDay   = 24 * time.Hour     // then it is tried once in an hour
	eventSlow  = time.Hour

	// EventLifetime is how long a processed event is retained.
	EventLifetime = 30 * 24 * time.Hour
)

// Retry returns when to retry an event that could not be processed, or nil to give it up. refused reports that the gateway refuses
// the keys of the account, which only the operator can change.
func (e Event) Retry(now time.Time, refused bool) *time.Time {
	age := now.Sub(e.ReceivedAt)
	if age >= eventLimit {
		return nil
	}
	at := e.Again(now)
	switch {
	case age >= eventDay:
		at = now.Add(eventSlow)
	case refused:
		at = now.Add(min(time.Second<<min(e.Tries, 12), eventSlow))
	}
	return &at
}
