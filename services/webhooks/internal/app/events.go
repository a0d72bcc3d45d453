package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/view"
)

// topic is the topic of this service's events. Their key is the endpoint's id, and all are internal:
//
//	webhook_endpoint.failing   domain.WarnAfter attempts in succession have failed
//	webhook_endpoint.disabled  the platform has disabled the endpoint
//
// and one for each write of an operator: the constants below. Identity writes all of them into the audit log. The console shows them.
const topic = "webhooks"

// The events of writes. Their objects are empty: the audit log contains the names of the changed fields, but no values.
const (
	endpointCreated   = "webhook_endpoint.created"
	endpointUpdated   = "webhook_endpoint.updated"
	endpointDeleted   = "webhook_endpoint.deleted"
	secretRotated     = "webhook_endpoint.secret_rotated"
	eventsReplayed    = "webhook_endpoint.replayed"
	eventResent       = "webhook_endpoint.event_resent"
	deliveryRequested = "webhook_endpoint.delivery_retried"
)

// publishWrite adds the event of a write of e to the outbox, with the names of the changed fields.
func publishWrite(ctx context.Context, tx pg.Tx, wake func(), name string, e domain.Endpoint, fields ...string) error {
	previous := make(map[string]any, len(fields))
	for _, field := range fields {
		previous[field] = nil
	}
	names, err := json.Marshal(previous)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return outbox.Emit(ctx, tx, wake, outbox.Event{
		Type: name, Topic: topic, AggregateID: e.ID.String(), Version: e.Version, Previous: names, Internal: true,
	})
}

// changedFields returns the names of the public fields that differ, without those that each change sets.
func changedFields(ctx context.Context, before, after domain.Endpoint) ([]string, error) {
	raw, err := outbox.Previous(ctx, view.Endpoint, before, after)
	if err != nil {
		return nil, err
	}
	var previous map[string]json.RawMessage
	if err := json.Unmarshal(raw, &previous); err != nil {
		return nil, fmt.Errorf("changed fields: %w", err)
	}
	return slices.Sorted(maps.Keys(previous)), nil
}

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
