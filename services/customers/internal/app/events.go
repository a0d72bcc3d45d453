package app

import (
	"encoding/json"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/customers/internal/domain"
)

// topic is the topic of this service's events. The customer's id is the key.
const topic = "customers"

// The events that this service emits.

func customerCreated(c domain.Customer, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "customer.created", Topic: topic, AggregateID: c.ID.String(), Version: c.Version, Object: body}
}

func customerUpdated(c domain.Customer, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "customer.updated", Topic: topic, AggregateID: c.ID.String(), Version: c.Version,
		Object: body, Previous: previous,
	}
}

// customerErased tells the platform's own projections to erase their copies. It contains only the id.
func customerErased(id domain.CustomerID, version int64, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "customer.erased", Topic: topic, AggregateID: id.String(), Version: version,
		Object: body, Internal: true,
	}
}
