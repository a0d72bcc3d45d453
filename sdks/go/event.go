package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Event is an event. Its type tells you what happened, and determines the type of the object in its data:
//
//	switch e := event.(type) {
//	case *holdfast.BookingCreatedEvent:
//		fmt.Println(e.Data.Object.Number)
//	}
type Event interface {
	EventID() string      // evt_…
	EventType() string    // booking.created
	EventTime() time.Time // of the change
}

// UnknownEvent is an event of a type that this version of the SDK does not know.
type UnknownEvent struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"created_at"`
	Raw       []byte    `json:"-"` // the whole event
}

// EventID returns the ID of the event.
func (e *UnknownEvent) EventID() string { return e.ID }

// EventType returns the type of the event.
func (e *UnknownEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *UnknownEvent) EventTime() time.Time { return e.CreatedAt }

// MarshalJSON returns the whole event.
func (e *UnknownEvent) MarshalJSON() ([]byte, error) { return e.Raw, nil }

// ParseEvent reads an event from JSON. It does not verify a signature: use [Unwrap] for deliveries to a webhook.
func ParseEvent(document []byte) (Event, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, err
	}
	if head.Type == "" {
		return nil, errors.New("the event has no type")
	}
	if event := newEvent(head.Type); event != nil {
		err := json.Unmarshal(document, event)
		return event, err
	}
	event := &UnknownEvent{Raw: append([]byte(nil), document...)}
	err := json.Unmarshal(document, event)
	return event, err
}

// Events is a list of events in a document.
type Events []Event

// UnmarshalJSON reads each event as its type.
func (e *Events) UnmarshalJSON(document []byte) error {
	var rows []json.RawMessage
	if err := json.Unmarshal(document, &rows); err != nil {
		return err
	}
	*e = make(Events, len(rows))
	for i, row := range rows {
		var err error
		if (*e)[i], err = ParseEvent(row); err != nil {
			return err
		}
	}
	return nil
}

// event sends a request whose response is an event.
func event(ctx context.Context, c *Client, request call, options []Option) (Event, error) {
	e, err := one[Event](ctx, c, request, options)
	if err != nil {
		return nil, err
	}
	return *e, nil
}
