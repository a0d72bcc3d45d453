package consume

import (
	"encoding/json"
	"fmt"
	"slices"

	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// endpointWrites are the types of the events about writes of endpoints.
var endpointWrites = []string{
	"webhook_endpoint.created", "webhook_endpoint.updated", "webhook_endpoint.deleted", "webhook_endpoint.secret_rotated",
	"webhook_endpoint.replayed", "webhook_endpoint.event_resent", "webhook_endpoint.delivery_retried",
}

// endpoint creates the record of a write of an endpoint, or of an endpoint that fails or that the platform disabled. It encodes the object again, because a
// number that jsonb formats differently would break the chain.
func endpoint(e *eventsv1.Event) (*domain.Record, error) {
	switch {
	case slices.Contains(endpointWrites, e.GetType()):
		return change(e)
	case e.GetType() != domain.EndpointFailing && e.GetType() != domain.EndpointDisabled:
		return nil, nil
	}
	var object internalapi.EndpointHealth
	if err := json.Unmarshal(e.GetObject(), &object); err != nil {
		return nil, fmt.Errorf("endpoint health: %w", err)
	}
	if object.ID == "" || object.ID != e.GetObjectId() {
		return nil, fmt.Errorf("an event of endpoint %q holds endpoint %q", e.GetObjectId(), object.ID)
	}
	after, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("endpoint health: %w", err)
	}
	return &domain.Record{Object: object.ID, After: after}, nil
}
