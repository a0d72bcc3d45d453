// Package view turns nouns into their public bodies. Answers, stored replies, the event log and deliveries all
// come from here, so they cannot differ.
package view

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
)

// ETag is the entity tag of a version.
func ETag(version int64) string { return fmt.Sprintf("%q", fmt.Sprint(version)) }

// Render is v as it is stored and sent: JSON without HTML escapes.
func Render(v any) (json.RawMessage, error) { return httpx.Encode(v) }

func orNull[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*v)
}

// Endpoint is the public shape of an endpoint.
func Endpoint(e domain.Endpoint, mode api.Mode) api.WebhookEndpoint {
	return api.WebhookEndpoint{
		Id: e.ID.String(), Object: api.WebhookEndpointObjectWebhookEndpoint, Url: e.URL, EventTypes: e.EventTypes,
		Description: orNull(e.Description), Status: api.WebhookEndpointStatus(e.Status),
		DisabledReason: orNull((*api.WebhookEndpointDisabledReason)(e.DisabledReason)),
		MaxInFlight:    e.MaxInFlight, MaxPerSecond: e.MaxPerSecond, ConsecutiveFailures: e.ConsecutiveFailures,
		Mode: mode, Version: e.Version, CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(),
	}
}

// EndpointWithSecret is an endpoint in the answers that show its secret.
func EndpointWithSecret(e domain.Endpoint, secret string, mode api.Mode) api.WebhookEndpointWithSecret {
	plain := Endpoint(e, mode)
	return api.WebhookEndpointWithSecret{
		Id: plain.Id, Object: api.WebhookEndpointWithSecretObjectWebhookEndpoint, Url: plain.Url, EventTypes: plain.EventTypes,
		Description: plain.Description, Status: plain.Status,
		DisabledReason: orNull((*api.WebhookEndpointWithSecretDisabledReason)(e.DisabledReason)),
		MaxInFlight:    plain.MaxInFlight, MaxPerSecond: plain.MaxPerSecond, ConsecutiveFailures: plain.ConsecutiveFailures,
		Secret: secret, Mode: mode, Version: plain.Version, CreatedAt: plain.CreatedAt, UpdatedAt: plain.UpdatedAt,
	}
}

// Delivery is the public shape of a delivery.
func Delivery(d domain.Delivery, mode api.Mode) api.Delivery {
	attempts := make([]api.DeliveryAttempt, len(d.Attempts))
	for i, a := range d.Attempts {
		attempts[i] = api.DeliveryAttempt{
			Number: a.Number, At: a.At.UTC(), StatusCode: orNull(a.StatusCode), DurationMs: int(a.DurationMS),
			Error: orNull(a.Error), ResponseBody: orNull(a.ResponseBody),
		}
	}
	next := nullable.NewNullNullable[time.Time]()
	if d.NextAttemptAt != nil {
		next = nullable.NewNullableWithValue(d.NextAttemptAt.UTC())
	}
	return api.Delivery{
		Id: d.ID.String(), Object: api.DeliveryObjectDelivery, EndpointId: d.EndpointID.String(), EventId: d.EventID.String(),
		EventType: d.EventType, Status: api.DeliveryStatus(d.Status), Attempts: attempts, NextAttemptAt: next,
		Mode: mode, CreatedAt: d.ID.Time(), UpdatedAt: d.UpdatedAt.UTC(),
	}
}
