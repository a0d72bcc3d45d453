package proto

// EventType is one of the types that receivers of webhooks know. The contract declares them, with x-event-types.
type EventType struct {
	Name        string // as Event.type and the contract's EventType carry it
	Scope       string // the read scope of its resource
	Description string // when it is sent
}
