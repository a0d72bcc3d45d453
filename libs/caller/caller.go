// Package caller carries the identity of the caller from the gateway to a service, and from service to service: a
// short-lived statement, signed with HMAC-SHA256 under a key that only the two sides share.
package caller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/ids"
)

// Mode is "live" or "test".
type Mode string

// The two modes. Neither mode sees the other's data.
const (
	Live Mode = "live"
	Test Mode = "test"
)

// ModeOf returns the mode for the value of a livemode column.
func ModeOf(live bool) Mode {
	if live {
		return Live
	}
	return Test
}

// Caller is the verified origin of a request. It travels in the context of every call.
type Caller struct {
	Tenant        ids.Tenant `json:"tn"`
	Timezone      string     `json:"tz"`            // IANA name
	Currency      string     `json:"cur"`           // ISO 4217
	PolicyVersion int64      `json:"pol"`           // incremented by each change of the tenant
	Mode          Mode       `json:"mode"`          //
	Clock         *time.Time `json:"clk,omitempty"` // the tenant's test clock, if it has one
	Credential    string     `json:"cred"`          // key_…, a grant's id, or svc:<name>
	Kind          string     `json:"kind"`          // api_key, oauth or service
	Scopes        []string   `json:"scp,omitempty"`
	OnBehalfOf    string     `json:"obo,omitempty"` // the credential for which a service acts as itself
	// Caps are the caps that the platform has set for the tenant, by name. They are shared with other requests and must not be changed.
	Caps        map[string]int `json:"caps,omitempty"`
	RequestID   string         `json:"rid,omitempty"`
	Traceparent string         `json:"-"`
	Fingerprint []byte         `json:"-"` // of this request, if the calling service computed it
}

// Live reports whether the caller works in live mode.
func (c Caller) Live() bool { return c.Mode == Live }

// Has reports whether scope was granted. No scope implies another.
func (c Caller) Has(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Actor returns who caused the call: the credential for which a service acts, otherwise the caller's own.
func (c Caller) Actor() string { return cmp.Or(c.OnBehalfOf, c.Credential) }

// ActingAs returns c as the service, with its own idempotency keys. The actor does not change.
func (c Caller) ActingAs(service string) Caller {
	c.OnBehalfOf = c.Actor()
	c.Credential, c.Kind = "svc:"+service, "service"
	return c
}

// Now returns the tenant's time: the test clock if one is set, otherwise real.
func (c Caller) Now(real time.Time) time.Time {
	if c.Clock != nil && c.Mode == Test {
		return *c.Clock
	}
	return real
}

// Service returns the caller for a service that processes a tenant's data on its own, with its own idempotency keys.
func Service(name string, tenant ids.Tenant, mode Mode) Caller {
	return Caller{Tenant: tenant, Mode: mode, Credential: "svc:" + name, Kind: "service"}
}

type key struct{}

// ErrNone reports that a context has no caller, because the request was not verified.
var ErrNone = errors.New("no caller in context")

// With returns ctx with the caller.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// Require returns the caller of ctx, or ErrNone if there is none.
func Require(ctx context.Context) (Caller, error) {
	c, ok := ctx.Value(key{}).(Caller)
	if !ok {
		return Caller{}, ErrNone
	}
	return c, nil
}

// FromContext returns the caller of ctx for code that runs after the caller was verified. Without a caller it returns
// the zero Caller, which matches no tenant. Use Require where a missing caller must be an error.
func FromContext(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	return c
}
