// Package app holds the verbs of webhooks and owns their transactions: what an operator does to endpoints and
// deliveries, what comes in from Kafka, and the work of delivering.
package app

import (
	"context"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/proto"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
)

// AllTypes are the names of the catalogue.
func AllTypes() []string {
	out := make([]string, len(proto.EventTypes))
	for i, t := range proto.EventTypes {
		out[i] = t.Name
	}
	return out
}

// Readable are the types whose resources the caller may read.
func Readable(ctx context.Context) []string {
	return slices.DeleteFunc(AllTypes(), func(t string) bool { return MayRead(ctx, []string{t}) != nil })
}

// MayRead is the 403 of the first type, in the order of the catalogue, whose resource the caller may not read;
// domain.Every is all of them.
func MayRead(ctx context.Context, types []string) error {
	asked := map[string]bool{}
	for _, t := range types {
		asked[t] = true
	}
	for _, t := range proto.EventTypes {
		if (asked[t.Name] || asked[domain.Every]) && !caller.Must(ctx).Has(t.Scope) {
			return apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks the scope "+t.Scope+", which "+t.Name+" needs.").
				WithHeader("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+t.Scope+`"`)
		}
	}
	return nil
}

func mode(ctx context.Context) api.Mode { return api.Mode(caller.Must(ctx).Mode) }

func laneKey(ctx context.Context, id domain.EndpointID) domain.LaneKey {
	c := caller.Must(ctx)
	return domain.LaneKey{Tenant: c.Tenant, Livemode: c.Live(), Endpoint: id}
}
