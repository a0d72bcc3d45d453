// Package view converts domain types into their public bodies. Responses, stored responses, the event log and deliveries use the
// same functions, so their bodies are equal.
package view

import (
	"maps"
	"slices"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Endpoint returns the public body of an endpoint.
func Endpoint(e domain.Endpoint, mode api.Mode) api.WebhookEndpoint {
	return api.WebhookEndpoint{
		Id: e.ID.String(), Object: api.WebhookEndpointObjectWebhookEndpoint, Url: e.URL, EventTypes: e.EventTypes,
		Description: api.OrNull(e.Description), Status: api.WebhookEndpointStatus(e.Status),
		DisabledReason: api.OrNull((*api.WebhookEndpointDisabledReason)(e.DisabledReason)),
		MaxInFlight:    e.MaxInFlight, MaxPerSecond: e.MaxPerSecond, Headers: headers(e.HeaderNames), ConsecutiveFailures: e.ConsecutiveFailures,
		Warning: api.OrNull(e.Warning()), CreatedBy: api.OrNull(&e.CreatedBy), Mode: mode, Version: e.Version, CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(),
	}
}

// EndpointWithSecret returns the public body of an endpoint with its secret.
func EndpointWithSecret(e domain.EndpointWithSecret, mode api.Mode) api.WebhookEndpointWithSecret {
	plain := Endpoint(e.Endpoint, mode)
	return api.WebhookEndpointWithSecret{
		Id: plain.Id, Object: api.WebhookEndpointWithSecretObjectWebhookEndpoint, Url: plain.Url, EventTypes: plain.EventTypes,
		Description: plain.Description, Status: plain.Status,
		DisabledReason: api.OrNull((*api.WebhookEndpointDisabledReason)(e.DisabledReason)),
		MaxInFlight:    plain.MaxInFlight, MaxPerSecond: plain.MaxPerSecond, Headers: plain.Headers, ConsecutiveFailures: plain.ConsecutiveFailures,
		Warning: plain.Warning, CreatedBy: plain.CreatedBy, Secret: e.Secret, Mode: mode, Version: plain.Version, CreatedAt: plain.CreatedAt, UpdatedAt: plain.UpdatedAt,
	}
}

// headers returns the names of headers with null instead of their values.
func headers(names []string) map[string]*string {
	out := make(map[string]*string, len(names))
	for _, name := range names {
		out[name] = nil
	}
	return out
}

// Delivery returns the public body of a delivery.
func Delivery(d domain.Delivery, mode api.Mode) api.Delivery {
	attempts := make([]api.DeliveryAttempt, len(d.Attempts))
	for i, a := range d.Attempts {
		attempts[i] = api.DeliveryAttempt{
			Number: a.Number, At: a.At.UTC(), StatusCode: api.OrNull(a.StatusCode), DurationMs: int(a.DurationMS),
			Error: api.OrNull(a.Error), ResponseBody: api.OrNull(a.ResponseBody),
		}
	}
	next := api.Null[time.Time]()
	if d.NextAttemptAt != nil {
		next = nullable.NewNullableWithValue(d.NextAttemptAt.UTC())
	}
	return api.Delivery{
		Id: d.ID.String(), Object: api.DeliveryObjectDelivery, EndpointId: d.EndpointID.String(), EventId: d.EventID.String(),
		EventType: d.EventType, Status: api.DeliveryStatus(d.Status), Attempts: attempts, NextAttemptAt: next,
		FailureReason: api.OrNull((*api.DeliveryFailureReason)(d.FailureReason)),
		Mode:          mode, CreatedAt: d.ID.Time(), UpdatedAt: d.UpdatedAt.UTC(),
	}
}

// SentDelivery returns a delivery with the sent headers and body, for the operators' console.
func SentDelivery(d domain.Delivery, sent domain.SentEvent, mode api.Mode) internalapi.SentDelivery {
	out := internalapi.SentDelivery{Delivery: Delivery(d, mode), Body: string(sent.Body), Sample: sent.Sample, Requests: make([]internalapi.SentRequest, len(d.Attempts))}
	for i, a := range d.Attempts {
		headers := domain.SentHeaders(d.EventID.String(), d.EventType, d.ID.String(), a.Number, a.At)
		one := internalapi.SentRequest{Number: a.Number}
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			one.Headers = append(one.Headers, internalapi.SentHeader{Name: name, Value: headers[name]})
		}
		out.Requests[i] = one
	}
	return out
}
