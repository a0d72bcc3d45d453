package app

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/identity/internal/domain"
)

// topic is the topic of this service's events. Their key is the tenant's id.
const topic = "identity"

// This service emits only these events.

// tenantUpdated returns the event that informs the services about a change of a tenant's settings, policy, or test clock. Its
// object is internalapi.Tenant, like the response of the internal call. It is published once, with livemode true, and applies to
// both modes.
func tenantUpdated(t domain.Tenant, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "tenant.updated", Topic: topic, AggregateID: t.ID.String(), Version: t.Version, Object: body, Internal: true,
	}
}

// usageRecorded returns the event that tells billing systems that the usage of a day is recorded. Its object is
// internalapi.UsageRecorded. It belongs to no tenant, and its version is the day since 1970-01-01.
func usageRecorded(day time.Time, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "usage.recorded", Topic: topic, AggregateID: domain.PlatformTenant.String(), Version: day.Unix() / int64(24*time.Hour/time.Second),
		Object: body, Internal: true,
	}
}
