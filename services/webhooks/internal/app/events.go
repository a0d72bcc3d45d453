package app

import (
	"context"
	"fmt"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/domain"
)

// topic is the topic of this service's events. Their key is the endpoint's id, and all are internal:
//
//	webhook_endpoint.failing   domain.WarnAfter attempts in succession have failed
//	webhook_endpoint.disabled  the platform has disabled the endpoint
//
// Identity writes both into the audit log. The console shows them.
const topic = "webhooks"

// publishHealth adds the event webhook_endpoint.<name> with the state of e to the outbox. The transaction has locked e, and
// version is its new version.
func publishHealth(ctx context.Context, tx pg.Tx, name string, e domain.Endpoint, version int64) error {
	state := internalapi.EndpointHealth{ID: e.ID.String(), Status: string(e.Status), ConsecutiveFailures: e.ConsecutiveFailures}
	if e.DisabledReason != nil {
		state.DisabledReason = new(string(*e.DisabledReason))
	}
	body, err := contract.Encode(state)
	if err != nil {
		return err
	}
	err = outbox.Add(ctx, tx, outbox.Event{
		Type: "webhook_endpoint." + name, Topic: topic, AggregateID: e.ID.String(), Version: version, Object: body, Internal: true,
	})
	if err != nil {
		return fmt.Errorf("webhook_endpoint.%s: %w", name, err)
	}
	return nil
}
