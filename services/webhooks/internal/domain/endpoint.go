package domain

import (
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
)

// Places is how many endpoints a tenant may have in one mode.
var Places = quota.Cap{Most: 50, Rows: "webhook endpoints", Field: "url", Remedy: "Delete one first."}

// MaxPending is how many deliveries may wait for an endpoint after a replay. Live events beyond it are still taken.
const MaxPending = 100_000

// MaxSecrets is how many secrets of an endpoint may sign at a time; a rotation ends the oldest beyond.
const MaxSecrets = 5

// Every is the subscription to every type, and stands alone.
const Every = "*"

// Status of an endpoint.
type Status string

// The states of an endpoint.
const (
	Enabled  Status = "enabled"
	Disabled Status = "disabled"
)

// Reason says why an endpoint is disabled.
type Reason string

// The reasons.
const (
	Requested Reason = "requested"            // by the operator
	Failures  Reason = "consecutive_failures" // DisableAfter of them
	Gone      Reason = "gone"                 // it answered 410
)

// What so many failed attempts in a row lead to.
const (
	WarnAfter    = 10
	DisableAfter = 20
)

// Endpoint is where events are delivered to.
type Endpoint struct {
	ID                  EndpointID
	URL                 string
	EventTypes          []string
	Description         *string
	Status              Status
	DisabledReason      *Reason
	MaxInFlight         int
	MaxPerSecond        int
	ConsecutiveFailures int
	FailedWaiting       int // deliveries that waited when the platform disabled it, MaxCounted at most
	Version             int64
	CreatedAt           time.Time
	UpdatedAt           time.Time
}

// The bounds of an endpoint that names none.
const (
	DefaultInFlight  = 10
	DefaultPerSecond = 50
)

// CheckTypes is the verdict on a subscription whose items the contract knows.
func CheckTypes(types []string) error {
	if len(types) > 1 && slices.Contains(types, Every) {
		return apperr.Field("event_types", `Must be ["*"] alone, or types.`)
	}
	return nil
}

// Subscribes reports whether events of the type go to the endpoint.
func (e Endpoint) Subscribes(eventType string) bool {
	return slices.Contains(e.EventTypes, eventType) || slices.Contains(e.EventTypes, Every)
}

// SwitchedTo is the endpoint after an operator asked for a status. Enabling forgets all failures.
func (e Endpoint) SwitchedTo(s Status) Endpoint {
	if s == e.Status {
		return e
	}
	e.Status, e.DisabledReason = s, nil
	if s == Disabled {
		e.DisabledReason = new(Requested)
		return e
	}
	e.ConsecutiveFailures = 0
	return e
}

// After is the endpoint after attempts that ended in this order. A success resets the count, DisableAfter
// failures in a row disable it, 410 does at once; a disabled one stays as it is.
func (e Endpoint) After(outcomes ...Outcome) Endpoint {
	for _, o := range outcomes {
		switch {
		case e.Status == Disabled:
			return e
		case o.OK:
			e.ConsecutiveFailures = 0
		default:
			e.ConsecutiveFailures++
		}
		if o.Gone {
			e.Status, e.DisabledReason = Disabled, new(Gone)
		} else if e.ConsecutiveFailures >= DisableAfter {
			e.Status, e.DisabledReason = Disabled, new(Failures)
		}
	}
	return e
}

// Warns reports whether the operator must hear of attempts that end in this order: the WarnAfter-th failure in a row
// is among them.
func (e Endpoint) Warns(outcomes ...Outcome) bool {
	for _, o := range outcomes {
		before := e.ConsecutiveFailures
		if e = e.After(o); before < WarnAfter && e.ConsecutiveFailures >= WarnAfter {
			return true
		}
	}
	return false
}

// MaxCounted is up to where the deliveries that fail with an endpoint are counted.
const MaxCounted = MaxPending + 1

// Warning says in a sentence what the operator must know of an endpoint; nil when all is well or he has disabled it.
func (e Endpoint) Warning() *string {
	var why string
	switch {
	case e.Status == Disabled && e.DisabledReason != nil && *e.DisabledReason == Failures:
		why = fmt.Sprintf("Disabled after %d failed attempts in a row", DisableAfter)
	case e.Status == Disabled && e.DisabledReason != nil && *e.DisabledReason == Gone:
		why = "Disabled because it answered 410"
	case e.Status == Enabled && e.ConsecutiveFailures >= WarnAfter:
		return new(fmt.Sprintf("%d attempts in a row have failed; after %d the endpoint is disabled.", e.ConsecutiveFailures, DisableAfter))
	default:
		return nil
	}
	failed := fmt.Sprint(e.FailedWaiting)
	if e.FailedWaiting == MaxCounted {
		failed = fmt.Sprintf("more than %d", MaxPending)
	}
	return new(fmt.Sprintf("%s; %s waiting deliveries failed with it. Enable it, then replay the events.", why, failed))
}

// Outcome is how one attempt ended, for the health of its endpoint.
type Outcome struct{ OK, Gone bool }

// Secret is an endpoint's secret, unsealed.
type Secret struct {
	ID    SecretID
	Plain string
}

// SecretPrefixID is the prefix of a secret's id, which is internal.
type SecretPrefixID struct{}

// Prefix is "whs".
func (SecretPrefixID) Prefix() string { return "whs" }

// SecretID names a secret's row.
type SecretID = ids.ID[SecretPrefixID]
