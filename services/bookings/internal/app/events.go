package app

import (
	"encoding/json"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/bookings/internal/domain"
)

// topic is the topic of this service's events. Its key is the id of the changed object.
const topic = "bookings"

// The events that this service emits.

func bookingCreated(b domain.Booking, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "booking.created", Topic: topic, AggregateID: b.ID.String(), Version: b.Version, Object: body}
}

// bookingChanged returns booking.cancelled for the change that cancels a booking, and booking.updated for any other change.
func bookingChanged(b domain.Booking, body, previous json.RawMessage) outbox.Event {
	e := outbox.Event{
		Type: "booking.updated", Topic: topic, AggregateID: b.ID.String(), Version: b.Version,
		Object: body, Previous: previous,
	}
	if b.Status == domain.Cancelled && changed(previous, "status") {
		e.Type = "booking.cancelled"
	}
	return e
}

// catalogueUpdated returns the event for a new or changed row of the catalogue. service.updated, unit.updated, and package.updated
// are for the projections of other services and the audit log. holiday_rule.updated and closure.updated are for the audit log only.
func catalogueUpdated(kind, id string, version int64) outbox.Event {
	return outbox.Event{Type: kind, Topic: topic, AggregateID: id, Version: version, Internal: true}
}

// feedCreated is an event for the audit log. Its object does not contain the address of the feed.
func feedCreated(f domain.Feed) outbox.Event {
	return outbox.Event{Type: "calendar_feed.created", Topic: topic, AggregateID: f.ID.String(), Version: f.Version, Internal: true}
}

// feedDeleted is an event for the audit log. Its version is the one after the feed's last version.
func feedDeleted(f domain.Feed) outbox.Event {
	return outbox.Event{Type: "calendar_feed.deleted", Topic: topic, AggregateID: f.ID.String(), Version: f.Version + 1, Internal: true}
}

// closureDeleted is an event for the audit log. Its version is the one after the closure's last version.
func closureDeleted(c domain.Closure) outbox.Event {
	return outbox.Event{Type: "closure.deleted", Topic: topic, AggregateID: c.ID.String(), Version: c.Version + 1, Internal: true}
}

func changed(previous json.RawMessage, name string) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(previous, &fields); err != nil {
		return false
	}
	_, ok := fields[name]
	return ok
}
