package domain

import "time"

// DifferenceKind is the kind of difference between the gateway and this platform.
type DifferenceKind string

// The kinds of differences; "" means none.
const (
	DifferentEvent   DifferenceKind = "event"   // an event of the gateway that was not received
	DifferentIntent  DifferenceKind = "intent"  // the state or an amount of an intent
	DifferentRefund  DifferenceKind = "refund"  // the state of a refund
	DifferentDispute DifferenceKind = "dispute" // the state of a dispute
	DifferentLedger  DifferenceKind = "ledger"  // a movement that is not recorded
	DifferentUnknown DifferenceKind = "unknown" // an object of the gateway without a row here
)

// DifferenceKinds contains all of them.
var DifferenceKinds = []DifferenceKind{
	DifferentEvent, DifferentIntent, DifferentRefund, DifferentDispute, DifferentLedger, DifferentUnknown,
}

// Stage is a part of the comparison of an account. The stages run one after the other.
type Stage string

// The stages of a comparison. They read recent changes from the gateway's events, recently created objects from the gateway's
// lists, and all objects that are open here, however old.
const (
	StageEvents       Stage = "events"
	StageIntents      Stage = "intents"
	StageRefunds      Stage = "refunds"
	StageDisputes     Stage = "disputes"
	StageOpenIntents  Stage = "open_intents"
	StageOpenRefunds  Stage = "open_refunds"
	StageOpenDisputes Stage = "open_disputes"
)

// stages contains the stages in the order of the comparison.
var stages = []Stage{StageEvents, StageIntents, StageRefunds, StageDisputes, StageOpenIntents, StageOpenRefunds, StageOpenDisputes}

const (
	compared         = 3 * 24 * time.Hour   // maximum age of the intents and refunds that are listed
	comparedDisputes = 120 * 24 * time.Hour // maximum age of the listed disputes, which last for months
	comparedEvents   = 29 * 24 * time.Hour  // maximum age of the listed events; Stripe lists those of 30 days
	eventsOverlap    = 10 * time.Minute     // an event may be listed some time after its creation
	openInterval     = 24 * time.Hour       // between two comparisons of open objects
)

// Kind returns the stage that lists the kind of objects that this stage compares.
func (s Stage) Kind() Stage {
	switch s {
	case StageOpenIntents:
		return StageIntents
	case StageOpenRefunds:
		return StageRefunds
	case StageOpenDisputes:
		return StageDisputes
	default:
		return s
	}
}

// Open reports whether a stage compares the service's own open objects, which it requests from the gateway one by one.
func (s Stage) Open() bool { return s.Kind() != s }

// Listed is an object in a list of the gateway. Two are equal if the gateway reports the same state for both.
type Listed struct {
	ID                 string // pi_…, re_…, dp_… or evt_…
	Intent             GatewayID
	Tenant             string // the tenant in its metadata; "" if it belongs to no tenant of this platform
	Row                string // our id of the intent or the allocation, from its metadata
	Status             string // for an event: its type
	Received, Refunded int64
	FailedCharge       string
	Movements          string // txn_…, separated by commas
	Refund             string // re_…, which an event is about
}

// Event returns a listed event in the form in which it would have been received.
func (l Listed) Event(account AccountID) Event {
	return Event{AccountID: account, ID: l.ID, Type: l.Status, Intent: l.Intent, Refund: l.Refund}
}

// ListPage is a page of a list.
type ListPage struct {
	Items []Listed
	Last  string // the id after which the next page begins; "" if the page is empty
	More  bool
}

// Known is this service's state of a listed object.
type Known struct {
	Intent           Intent // by the gateway's id; zero if there is none
	RowStatus        Status // of the intent by the id of its row; "" if there is none
	PartStatus       RefundStatus
	PartGatewayID    string
	DisputeStatus    DisputeStatus
	MissingMovements int
	Due              bool // an event about the intent is waiting, so the intent is read soon if it is known
	Elsewhere        bool // the intent belongs to another connection to the same account, which compares it
	Received         bool // the event was received
}

// Compare returns how a listed object differs from the known one. It returns "" if they are equal, if the object does not belong to
// the tenant, or if a worker will read the object soon.
func (s Stage) Compare(l Listed, k Known, tenant string) DifferenceKind {
	own, kind := l.Tenant == tenant && l.Row != "", s.Kind()
	var differs DifferenceKind
	switch {
	case k.Elsewhere:
		return ""
	case kind == StageEvents:
		return compareEvent(l, k, own)
	case k.Due && !k.Intent.ID.IsZero():
		return ""
	case kind == StageIntents && own:
		differs = compareIntent(l, k)
	case kind == StageRefunds && own:
		differs = compareRefund(l, k)
	case kind == StageDisputes && !k.Intent.ID.IsZero() && k.DisputeStatus != DisputeStatus(l.Status):
		differs = DifferentDispute
	}
	if differs == "" && !k.Intent.ID.IsZero() && k.MissingMovements > 0 {
		return DifferentLedger
	}
	return differs
}

// compareEvent finds events about intents of this platform that were not received. Only the creation event of an intent names a
// row. It counts as a difference only if the intent was recorded as refused.
func compareEvent(l Listed, k Known, own bool) DifferenceKind {
	switch {
	case own && k.Intent.ID.IsZero() && k.RowStatus == Refused:
		return DifferentIntent
	case l.Row != "", k.Intent.ID.IsZero(), k.Received, l.Intent == "":
		return ""
	default:
		return DifferentEvent
	}
}

func compareIntent(l Listed, k Known) DifferenceKind {
	p := k.Intent
	switch {
	case p.ID.IsZero() && k.RowStatus == Creating: // the completer searches for it
		return ""
	case p.ID.IsZero() && k.RowStatus == Refused:
		return DifferentIntent
	case p.ID.IsZero():
		return DifferentUnknown
	case string(p.Status) != l.Status, p.Received != l.Received, p.Refunded != l.Refunded, l.FailedCharge != "" && l.FailedCharge != p.FailedCharge:
		return DifferentIntent
	default:
		return ""
	}
}

func compareRefund(l Listed, k Known) DifferenceKind {
	switch {
	case k.PartStatus == RefundCreating: // the completer searches for it
		return ""
	case k.PartStatus == "" || k.PartGatewayID != "" && k.PartGatewayID != l.ID:
		return DifferentUnknown
	case string(k.PartStatus) != l.Status:
		return DifferentRefund
	default:
		return ""
	}
}

// Reconciliation is the progress of the comparison of an account.
type Reconciliation struct {
	AccountID    AccountID
	Tries        int
	Stage        Stage
	Cursor       string
	StartedAt    *time.Time
	EventsUntil  *time.Time // the gateway's earlier events were read; nil: none were
	EventsSeen   int        // events in this run about intents of this platform that were received
	EventsMissed int        // events in this run that were not received
	OpenedAt     *time.Time // start of the last run that compared open objects
	Until        time.Time  // end of the lease as stored; if the stored one has changed, the lease was lost
}

// FirstStage is the stage in which a run begins.
const FirstStage = StageEvents

// Since returns the earliest creation time of the objects that the current stage compares.
func (r Reconciliation) Since() time.Time {
	switch r.Stage {
	case StageEvents:
		oldest := r.StartedAt.Add(-comparedEvents)
		if r.EventsUntil != nil && r.EventsUntil.Add(-eventsOverlap).After(oldest) {
			return r.EventsUntil.Add(-eventsOverlap)
		}
		return oldest
	case StageDisputes, StageOpenDisputes:
		return r.StartedAt.Add(-comparedDisputes)
	default:
		return r.StartedAt.Add(-compared)
	}
}

// Advance returns the run at its next stage, which is "" if the run has ended. Open objects are compared once a day.
func (r Reconciliation) Advance() Reconciliation {
	if r.Stage == StageEvents {
		r.EventsUntil = r.StartedAt
	}
	r.Cursor = ""
	open := r.OpenedAt == nil || r.StartedAt.Sub(*r.OpenedAt) >= openInterval
	for i, s := range stages {
		if s != r.Stage {
			continue
		}
		if r.Stage = ""; i+1 < len(stages) && (open || !stages[i+1].Open()) {
			r.Stage = stages[i+1]
		}
		break
	}
	if r.Stage == "" && open {
		r.OpenedAt = r.StartedAt
	}
	return r
}

// Ended returns the state between two runs.
func (r Reconciliation) Ended() Reconciliation {
	return Reconciliation{AccountID: r.AccountID, Stage: FirstStage, EventsUntil: r.EventsUntil, OpenedAt: r.OpenedAt, Until: r.Until}
}

// EventsState reports whether the events of an account reach this platform.
type EventsState string

// The states of an account's events.
const (
	EventsOK      EventsState = "ok"
	EventsMissing EventsState = "missing" // the account has no signing secret, so no event is accepted
	EventsLate    EventsState = "late"    // the gateway has events that were not received
)

// Events returns the state of the events after a run. signed reports that the account has a signing secret. A run without events
// changes nothing, nor do events that were missed before the account had a secret.
func (r Reconciliation) Events(before EventsState, signed bool) EventsState {
	switch {
	case !signed:
		return EventsMissing
	case before == EventsMissing:
		return EventsOK
	case r.EventsMissed > 0:
		return EventsLate
	case r.EventsSeen > 0:
		return EventsOK
	default:
		return before
	}
}
