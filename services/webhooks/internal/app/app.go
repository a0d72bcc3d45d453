// Package app contains the use cases of webhooks and owns their transactions: operators' actions on endpoints and deliveries, the
// intake of events from Kafka, and the dispatcher that delivers them.
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

// AllTypes returns the names of all event types.
func AllTypes() []string {
	out := make([]string, len(proto.EventTypes))
	for i, t := range proto.EventTypes {
		out[i] = t.Name
	}
	return out
}

// Readable returns the types whose resources the caller may read.
func Readable(ctx context.Context) []string {
	return slices.DeleteFunc(AllTypes(), func(t string) bool { return CheckRead(ctx, []string{t}) != nil })
}

// CheckRead returns the 403 for the first type, in the order of the catalogue, whose resource the caller may not read.
// domain.Every stands for all types.
func CheckRead(ctx context.Context, types []string) error {
	requested := map[string]bool{}
	for _, t := range types {
		requested[t] = true
	}
	for _, t := range proto.EventTypes {
		if (requested[t.Name] || requested[domain.Every]) && !caller.FromContext(ctx).Has(t.Scope) {
			return apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks the scope "+t.Scope+", which "+t.Name+" needs.").
				WithHeader("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+t.Scope+`"`)
		}
	}
	return nil
}

// mode returns the caller's mode.
func mode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }
