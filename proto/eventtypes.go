package proto

// EventType is a type of event that webhook receivers can receive. The contract declares the types with x-event-types.
type EventType struct {
	Name        string // the value in Event.type and in the contract's EventType
	Scope       string // the read scope of its resource
	Description string // when it is sent
}
