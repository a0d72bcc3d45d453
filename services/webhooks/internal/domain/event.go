package domain

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/ids"
)

// Retention is how long events and deliveries are stored.
const Retention = 30 * 24 * time.Hour

// MaxAhead is how far in the future an event's time can be.
const MaxAhead = 24 * time.Hour

// Event is a published change.
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

// SentEvent is the content of the deliveries of an event.
type SentEvent struct {
	Body   []byte
	Sample bool // a test event, which cannot be read by its id
}

// StoredEvent is an event in the form in which it is shown and delivered. Only an erasure changes Body.
type StoredEvent struct {
	ID        ids.Event
	Type      string
	Body      []byte
	UpdatedAt time.Time // when it was written
}
