package app

import (
	"context"
	"fmt"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/domain"
)

// topic is where this service's events go, keyed by the endpoint's id. All are internal:
//
//	webhook_endpoint.failing   domain.WarnAfter attempts in a row have failed
//	webhook_endpoint.disabled  the platform has disabled the endpoint
//
// Identity writes both into the audit log; the operator area shows them.
const topic = "webhooks"

// health tells of what e has become, whose row the transaction has locked; version is its new one.
func health(ctx context.Context, tx pg.Tx, what string, e domain.Endpoint, version int64) error {
	state := internalapi.EndpointHealth{ID: e.ID.String(), Status: string(e.Status), ConsecutiveFailures: e.ConsecutiveFailures}
	if e.DisabledReason != nil {
		state.DisabledReason = new(string(*e.DisabledReason))
	}
	body, err := httpx.Encode(state)
	if err != nil {
		return err
	}
	err = outbox.Add(ctx, tx, outbox.Event{
		Type: "webhook_endpoint." + what, Topic: topic, AggregateID: e.ID.String(), Version: version, Object: body, Internal: true,
	})
	if err != nil {
		return fmt.Errorf("webhook_endpoint.%s: %w", what, err)
	}
	return nil
}
