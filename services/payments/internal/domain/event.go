package domain

import (
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
)

// ErrEvent is the response to a webhook of the gateway that is too old or not signed with the account's secret.
var ErrEvent = apperr.New(apperr.BadRequest, "malformed_request", "The event has no valid signature of this account.")

// ErrAccountNotFound is the response to a webhook for an account that does not exist.
var ErrAccountNotFound = apperr.New(apperr.NotFound, "not_found", "No payment gateway account has this path.")

// Event is an event sent by the gateway. Its content about an intent is not trusted: the intent is read again.
type Event struct {
	AccountID AccountID
	ID        string // evt_…
	Type      string
	Intent    GatewayID // "" if the event is about none
	Refund    string    // re_…; "" if the event is about none
	Tries     int

	ReceivedAt time.Time
	DueAt      *time.Time // when the event is processed or retried; nil: processed
	Dropped    bool       // the event is not stored
}

// ErrEventsWaiting is the response to a webhook of an account with too many unprocessed events. The gateway sends it again.
var ErrEventsWaiting = apperr.ErrUnavailable.WithMessage("Too many events of this account are pending. Send the event again later.")

const (
	// EventsWaiting limits how many unprocessed events an account can have.
	EventsWaiting = 10_000
	// EventsRetained limits how many processed events of an account are retained after each comparison of the account with the
	// gateway.
	EventsRetained = 100_000

	// eventWait is how long to retry an event with an unknown intent. It may arrive before the response to the creation of the
	// intent. After this time, the intent is assumed to belong to another program that uses the operator's account.
	eventWait = time.Hour
	// eventLease is longer than most reads of the gateway take. If a read takes longer, another process also reads, and the read
	// that began later counts.
	eventLease = 30 * time.Second
)

// OfRefund reports whether the refunds of the intent must be read too.
func (e Event) OfRefund() bool { return strings.Contains(e.Type, "refund") }

// OfDispute reports whether the disputes of the intent must be read too.
func (e Event) OfDispute() bool { return strings.HasPrefix(e.Type, "charge.dispute.") }

// RefundReadRequested returns an event that this service stores for itself once it knows the outcome of a refund, because the
// intent may have changed. id is the gateway's id, or the id of the allocation if the gateway refused the refund.
func RefundReadRequested(account AccountID, intent GatewayID, id string) Event {
	return Event{AccountID: account, ID: id, Type: "refund.asked", Intent: intent}
}

// IntentReadRequested returns an event that this service stores for itself after a repeated call returned an intent, because the
// intent may have changed since the first call.
func IntentReadRequested(account AccountID, intent GatewayID) Event {
	return Event{AccountID: account, ID: string(intent), Type: "intent.repeated", Intent: intent}
}

// Foreign reports whether an event whose intent is unknown does not belong to this platform.
func (e Event) Foreign(now time.Time) bool { return now.Sub(e.ReceivedAt) >= eventWait }

// EventLease returns when another process can take an event that this process takes now.
func EventLease(now time.Time) time.Time { return now.Add(eventLease) }

// Again returns when to retry an event.
func (e Event) Again(now time.Time) time.Time {
	return now.Add(min(time.Second<<min(e.Tries, 10), 5*time.Minute))
}

const (
	eventLimit = 3 * 24 * time.Hour // then an event is given up: the gateway no longer repeats it either, and the reconciler reads the intent
	eventDay   = 24 * time.Hour     // then it is retried once an hour
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
