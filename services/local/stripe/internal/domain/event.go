package domain

import (
	"encoding/json"
	"slices"
	"strings"
)

// Event is a change, with the state of the object right after it.
type Event struct {
	ID              string       `json:"id"`
	Object          string       `json:"object"`
	APIVersion      string       `json:"api_version"`
	Created         int64        `json:"created"`
	Data            EventData    `json:"data"`
	Livemode        bool         `json:"livemode"`
	PendingWebhooks int          `json:"pending_webhooks"` // when it occurred
	Request         EventRequest `json:"request"`
	Type            string       `json:"type"`
}

// EventData is the object, and the previous values of the changed fields.
type EventData struct {
	Object             json.RawMessage `json:"object"`
	PreviousAttributes map[string]any  `json:"previous_attributes,omitempty"`
}

// EventRequest is the request that caused an event; empty if there was none.
type EventRequest struct {
	ID             *string `json:"id"`
	IdempotencyKey *string `json:"idempotency_key"`
}

// Endpoint is a webhook endpoint.
type Endpoint struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Created       int64             `json:"created"`
	EnabledEvents []string          `json:"enabled_events"`
	Livemode      bool              `json:"livemode"`
	Metadata      map[string]string `json:"metadata"`
	Secret        string            `json:"secret"`
	Status        string            `json:"status"`
	URL           string            `json:"url"`
}

// Wants reports whether the endpoint receives events of the type.
func (e *Endpoint) Wants(kind string) bool {
	return slices.ContainsFunc(e.EnabledEvents, func(pattern string) bool {
		before, open := strings.CutSuffix(pattern, "*")
		return pattern == kind || open && strings.HasPrefix(kind, before)
	})
}

// Delivery is an event on its way to an endpoint.
type Delivery struct {
	Scope    Scope  `json:"scope"`
	Event    string `json:"event"`
	Endpoint string `json:"endpoint"`
	Queue    string `json:"lane"` // deliveries of one queue are sent one after the other
	Attempts int    `json:"attempts"`
}
