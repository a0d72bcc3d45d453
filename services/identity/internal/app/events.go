package app

import (
	"encoding/json"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/identity/internal/domain"
)

// topic is where this service's events go, keyed by the tenant's id.
const topic = "identity"

// All that this service emits.

// tenantUpdated tells the services that a tenant's settings, policy or test clock changed. Its object is internalapi.Tenant,
// as the internal call answers it. It is published once, with livemode true, and holds for both modes.
func tenantUpdated(t domain.Tenant, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "tenant.updated", Topic: topic, AggregateID: t.ID.String(), Version: t.Version, Object: body, Internal: true,
	}
}
