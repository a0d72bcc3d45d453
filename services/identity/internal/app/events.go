package app

import (
	"encoding/json"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/identity/internal/domain"
)

// topic is the topic of this service's events. Their key is the tenant's id.
const topic = "identity"

// This service emits only this event.

// tenantUpdated returns the event that informs the services about a change of a tenant's settings, policy, or test clock. Its
// object is internalapi.Tenant, like the response of the internal call. It is published once, with livemode true, and applies to
// both modes.
func tenantUpdated(t domain.Tenant, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "tenant.updated", Topic: topic, AggregateID: t.ID.String(), Version: t.Version, Object: body, Internal: true,
	}
}
