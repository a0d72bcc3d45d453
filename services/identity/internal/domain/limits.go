package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"
)

// MaxRequestsPerMinute is the highest rate limit that the platform can set for a tenant or its credentials: 10,000 requests a second.
const MaxRequestsPerMinute = 600_000

// Limits are the limits that the platform has set for a tenant. They apply to each mode. The others have their defaults.
type Limits struct {
	RequestsPerMinute           *int           // of all credentials of a mode; nil: the default
	CredentialRequestsPerMinute *int           // of each credential; nil: the default
	Caps                        map[string]int // by name in proto.Caps; never nil
}

// LimitsPatch contains the limits to set. Null sets the default.
type LimitsPatch struct {
	Reset                       bool // set the defaults of all limits first
	RequestsPerMinute           patch.Field[int]
	CredentialRequestsPerMinute patch.Field[int]
	Caps                        map[string]patch.Field[int] // by name in proto.Caps
}

// Apply returns the limits with the given ones. Call Check on the result.
func (l Limits) Apply(p LimitsPatch) Limits {
	if p.Reset {
		l = Limits{}
	}
	p.RequestsPerMinute.SetNullable(&l.RequestsPerMinute)
	p.CredentialRequestsPerMinute.SetNullable(&l.CredentialRequestsPerMinute)
	caps := maps.Clone(l.Caps)
	if caps == nil {
		caps = map[string]int{}
	}
	for name, most := range p.Caps {
		if !most.Given() {
			continue
		}
		if delete(caps, name); most.Pointer() != nil {
			caps[name] = *most.Pointer()
		}
	}
	l.Caps = caps
	return l
}

// Check returns a 422 with every invalid limit, or nil.
func (l Limits) Check() error {
	var wrong []apperr.FieldError
	for field, n := range map[string]*int{"requests_per_minute": l.RequestsPerMinute, "credential_requests_per_minute": l.CredentialRequestsPerMinute} {
		if !within(n, 1, MaxRequestsPerMinute) {
			wrong = append(wrong, apperr.FieldError{Field: field, Message: fmt.Sprintf("Must be 1 to %d, or null for the default.", MaxRequestsPerMinute)})
		}
	}
	for name, most := range l.Caps {
		i := slices.IndexFunc(proto.Caps, func(c proto.Cap) bool { return c.Name == name })
		switch {
		case i < 0:
			wrong = append(wrong, apperr.FieldError{Field: "caps." + name, Message: "Unknown cap. The caps are " + capNames() + "."})
		case most < 0 || most > proto.Caps[i].Highest:
			wrong = append(wrong, apperr.FieldError{Field: "caps." + name, Message: fmt.Sprintf("Must be 0 to %d, or null for the default, %d.", proto.Caps[i].Highest, proto.Caps[i].Default)})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.SortFunc(wrong, func(a, b apperr.FieldError) int { return strings.Compare(a.Field+a.Message, b.Field+b.Message) })
	return apperr.Fields(wrong)
}

func capNames() string {
	names := make([]string, len(proto.Caps))
	for i, c := range proto.Caps {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}
