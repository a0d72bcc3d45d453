package domain

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/ids"
)

// Retention is the time for which events and deliveries are stored.
const Retention = 30 * 24 * time.Hour

// MaxAhead is how far an event's time may be in the future.
const MaxAhead = 24 * time.Hour

// Event is a change as it was published.
type Event struct {
	ID             ids.Event
	Tenant         ids.Tenant
	Livemode       bool
	Type           string
	ObjectID       string
	Version        int64
	RequestID      string
	IdempotencyKey string
	Object         json.RawMessage
	Previous       json.RawMessage
}

// SentEvent is what the deliveries of an event carry.
type SentEvent struct {
	Body   []byte
	Sample bool // of a test; it cannot be read by its id
}

// StoredEvent is an event as it is shown and delivered. Only an erasure changes Body.
type StoredEvent struct {
	ID        ids.Event
	Type      string
	Body      []byte
	UpdatedAt time.Time // when it was written
}
