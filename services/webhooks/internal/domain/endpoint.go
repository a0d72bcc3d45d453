package domain

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"
)

// EndpointCap is the maximum number of endpoints that a tenant can have in one mode. The platform can set another number for a tenant.
var EndpointCap = quota.Cap{Name: proto.CapEndpoints.Name, Most: proto.CapEndpoints.Default, Rows: "webhook endpoints", Field: "url", Remedy: "Delete one first."}

// MaxPending is the maximum number of deliveries that can wait for an endpoint after a replay. New events can exceed it.
const MaxPending = 100_000

// MaxSecrets is the maximum number of valid secrets of an endpoint. A rotation deletes the oldest ones above it.
const MaxSecrets = 5

// Every is the subscription to every type. It is the only item of its list.
const Every = "*"

// Status is the status of an endpoint.
type Status string

// The statuses of an endpoint.
const (
	Enabled  Status = "enabled"
	Disabled Status = "disabled"
)

// Reason is the reason why an endpoint is disabled.
type Reason string

// The reasons why an endpoint is disabled.
const (
	Requested Reason = "requested"            // the operator requested it
	Failures  Reason = "consecutive_failures" // DisableAfter consecutive attempts failed
	Gone      Reason = "gone"                 // it returned 410
	Revoked   Reason = "grant_revoked"        // the grant that holds it has ended
)

// The numbers of consecutive failed attempts after which the operator is warned and the endpoint is disabled.
const (
	WarnAfter    = 10
	DisableAfter = 20
)

// Endpoint is a receiver to which events are delivered.
type Endpoint struct {
	ID                  EndpointID
	URL                 string
	EventTypes          []string
	Description         *string
	Status              Status
	DisabledReason      *Reason
	MaxInFlight         int
	MaxPerSecond        int
	CreatedBy           string   // id of the key, grant or operator
	Holder              string   // the credential with which it ends: CreatedBy, or the one that enabled it after that one had ended
	HeaderNames         []string // the names of its EndpointHeaders, sorted; only the dispatcher opens the values
	ConsecutiveFailures int
	FailedWaiting       int // the number of deliveries that were waiting when the platform disabled it, up to MaxCounted
	Version             int64
	CreatedAt           time.Time
	UpdatedAt           time.Time
}

// EndpointWithSecret is an endpoint with a new secret in plain text, which is shown once.
type EndpointWithSecret struct {
	Endpoint
	Secret string
}

// The default limits of an endpoint.
const (
	DefaultInFlight  = 10
	DefaultPerSecond = 50
)

// NewEndpoint returns an enabled endpoint with the default limits.
func NewEndpoint() Endpoint {
	return Endpoint{ID: ids.New[EndpointPrefix](), Status: Enabled, MaxInFlight: DefaultInFlight, MaxPerSecond: DefaultPerSecond}
}

// EndpointPatch contains the fields of a create or an update. An absent field does not change. Only the description can be null.
type EndpointPatch struct {
	URL, Description          patch.Field[string]
	EventTypes                patch.Field[[]string]
	Status                    patch.Field[Status]
	MaxInFlight, MaxPerSecond patch.Field[int]
	Headers                   patch.Field[EndpointHeaders] // all of them; never null
}

// Check returns an error if the event types, each of which is valid, are not a valid subscription, or if a header cannot be set.
func (p EndpointPatch) Check() error {
	var types []string
	var wrong error
	if p.EventTypes.Set(&types); len(types) > 1 && slices.Contains(types, Every) {
		wrong = apperr.Field("event_types", `Must be ["*"], or a list of event types without "*".`)
	}
	var headers EndpointHeaders
	p.Headers.Set(&headers)
	return apperr.Join(wrong, headers.Check())
}

// Discloses returns the types whose events a change of an endpoint can send to another receiver. If it changes the URL, the types
// or the status, these are the types before and after the change.
func (p EndpointPatch) Discloses(before Endpoint) []string {
	after := before
	p.URL.Set(&after.URL)
	p.EventTypes.Set(&after.EventTypes)
	p.Status.Set(&after.Status)
	if after.URL == before.URL && after.Status == before.Status && slices.Equal(after.EventTypes, before.EventTypes) {
		return nil
	}
	return slices.Concat(before.EventTypes, after.EventTypes)
}

// Apply returns the endpoint with the given fields, or the error of Check and of the headers that a new URL requires.
func (e Endpoint) Apply(p EndpointPatch) (Endpoint, error) {
	moved := e.retainsHeaders(p)
	p.URL.Set(&e.URL)
	p.Description.SetNullable(&e.Description)
	p.EventTypes.Set(&e.EventTypes)
	p.MaxInFlight.Set(&e.MaxInFlight)
	p.MaxPerSecond.Set(&e.MaxPerSecond)
	if headers := p.Headers.Pointer(); headers != nil {
		e.HeaderNames = headers.Names()
	}
	if status := p.Status.Pointer(); status != nil {
		e = e.SwitchedTo(*status)
	}
	return e, apperr.Join(moved, p.Check())
}

// retainsHeaders returns an error if the patch moves the endpoint to another origin and keeps its headers. Otherwise, a caller that can
// update the endpoint could send the values, which no response contains, to a server of its own.
func (e Endpoint) retainsHeaders(p EndpointPatch) error {
	moved := p.URL.Pointer()
	if moved == nil || len(e.HeaderNames) == 0 || p.Headers.Given() || sameOrigin(e.URL, *moved) {
		return nil
	}
	return apperr.Field("headers", "The URL has another origin, and the endpoint has headers. Send all headers again, or null to remove them.")
}

// sameOrigin reports whether two URLs have the same scheme, host and port. It returns false if one of them is not a valid URL.
func sameOrigin(a, b string) bool {
	before, ok := origin(a)
	after, valid := origin(b)
	return ok && valid && before == after
}

// origin returns the origin of a URL in the form of RFC 6454, section 6.2, with its port.
func origin(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port, true // only compared: an IPv6 address has no brackets
}

// Subscribes reports whether the endpoint receives events of the type.
func (e Endpoint) Subscribes(eventType string) bool {
	return slices.Contains(e.EventTypes, eventType) || slices.Contains(e.EventTypes, Every)
}

// SwitchedTo returns the endpoint after an operator set its status. Enabling resets the number of failures.
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

// EnabledBy returns the endpoint after an actor has enabled it. If it was disabled with the grant that held it, the actor holds it from
// now on.
func (e Endpoint) EnabledBy(actor string, before Endpoint) Endpoint {
	if e.Status == Enabled && before.DisabledReason != nil && *before.DisabledReason == Revoked {
		e.Holder = actor
	}
	return e
}

// WithoutGrant returns the endpoint after the grant that holds it has ended. failed is the number of deliveries that waited.
func (e Endpoint) WithoutGrant(failed int) Endpoint {
	e.Status, e.DisabledReason, e.FailedWaiting = Disabled, new(Revoked), failed
	return e
}

// After returns the endpoint after attempts with these outcomes, in this order. A success resets the number of failures.
// DisableAfter consecutive failures, or one response with status 410, disable the endpoint. A disabled endpoint does not change.
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

// Warns reports whether the WarnAfter-th consecutive failure is among these outcomes, so that the operator must be warned.
func (e Endpoint) Warns(outcomes ...Outcome) bool {
	for _, o := range outcomes {
		before := e.ConsecutiveFailures
		if e = e.After(o); before < WarnAfter && e.ConsecutiveFailures >= WarnAfter {
			return true
		}
	}
	return false
}

// MaxCounted is the maximum up to which the deliveries that fail when an endpoint is disabled are counted.
const MaxCounted = MaxPending + 1

// Warning returns a sentence about the health of an endpoint for its operator, or nil if the endpoint works or the operator
// disabled it.
func (e Endpoint) Warning() *string {
	var why string
	switch {
	case e.Status == Disabled && e.DisabledReason != nil && *e.DisabledReason == Failures:
		why = fmt.Sprintf("Disabled after %d consecutive failed attempts", DisableAfter)
	case e.Status == Disabled && e.DisabledReason != nil && *e.DisabledReason == Gone:
		why = "Disabled because it returned 410"
	case e.Status == Disabled && e.DisabledReason != nil && *e.DisabledReason == Revoked:
		why = "Disabled because the app that created it no longer has access"
	case e.Status == Enabled && e.ConsecutiveFailures >= WarnAfter:
		return new(fmt.Sprintf("%d consecutive attempts have failed. After %d, the endpoint is disabled.", e.ConsecutiveFailures, DisableAfter))
	default:
		return nil
	}
	failed := fmt.Sprint(e.FailedWaiting)
	if e.FailedWaiting == MaxCounted {
		failed = fmt.Sprintf("more than %d", MaxPending)
	}
	return new(fmt.Sprintf("%s. %s pending deliveries failed. Enable the endpoint, then replay the events.", why, failed))
}

// Outcome is the part of an attempt's result that affects the health of its endpoint.
type Outcome struct{ OK, Gone bool }

// Secret is an endpoint's secret in plain text.
type Secret struct {
	ID    SecretID
	Plain string
}

// SecretPrefixID is the prefix of a secret's id, which is not public.
type SecretPrefixID struct{}

// Prefix returns "whs".
func (SecretPrefixID) Prefix() string { return "whs" }

// SecretID is the id of a secret's row.
type SecretID = ids.ID[SecretPrefixID]
