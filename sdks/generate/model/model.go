// Package model describes the operations of the public contract by resource. The SDKs and the command line are generated from it.
package model

// Model is the contract as clients see it.
type Model struct {
	Resources []Resource  // in the order of the contract
	Errors    []ErrorCode // the codes that operations of the contract return, by status
	Events    []Event     // the event types, in the order of the contract
}

// Resource is a group of operations whose paths start with the same segment.
type Resource struct {
	Name        Name   // bookings, payment intents
	Object      string // the component schema of one object, such as Booking
	Description string // of the object
	Operations  []Operation
}

// Kind is the form of a successful response.
type Kind int

// The kinds of responses.
const (
	Plain  Kind = iota // one JSON document, or no content
	Page               // a page of a list with a cursor
	Raw                // a document of another type, such as PDF
	Stream             // server-sent events
)

// Operation is one request of a client.
type Operation struct {
	ID     string // operationId: createBooking. The CSV form of a list has the suffix Csv
	Name   Name   // create, list, get, update, delete, or the action, such as cancel or list deliveries
	Kind   Kind
	Method string // GET
	Path   string // /bookings/{id}, relative to the base URL

	PathParams   []Param
	QueryParams  []Param // without limit and cursor if Kind is Raw
	HeaderParams []Param // without Idempotency-Key, Prefer and If-Match

	Request         string // component schema of the body, or "" if it has no fields
	RequestRequired bool   // whether the body must be sent
	RequestExample  string // a body as indented JSON, or "" if it has no fields
	Response        string // component schema of the response, or "" if it has no JSON
	Item            string // component schema of the objects in data, if the response is a list
	MediaType       string // of the response: application/json, or "" if there is no content

	Idempotent  bool // takes Idempotency-Key
	Strict      bool // takes Prefer: handling=strict
	Conditional bool // takes If-Match
	Public      bool // takes no credential

	Scopes      []string
	ErrorCodes  []string
	Summary     string // Create a booking
	Description string // Markdown
}

// Param is a parameter of the path, the query or the header.
type Param struct {
	Name        string // as it is sent: customer_id
	Description string
	Required    bool
	Array       bool   // several values, joined by commas
	Map         bool   // pairs, sent as name[key]=value
	Type        string // of the value, or of each of the values: string, integer or boolean
	Format      string // date or date-time, if Type is string
	Schema      string // component schema of an enumeration, such as BookingStatusInput, or ""
	Example     any
}

// ErrorCode is a value of error.code.
type ErrorCode struct {
	Code   string
	Status int
	Cause  string
	Remedy string
	Retry  bool // whether the unchanged request can succeed later
}

// Event is an event type.
type Event struct {
	Type        string // booking.created
	Schema      string // BookingCreatedEvent
	Object      string // component schema of data.object: Booking
	Description string
	Scope       string // the scope to read it
}
