// Package model describes the operations of the public contract by resource. The SDKs and the command line are generated from it.
package model

// Model is the contract as clients see it.
type Model struct {
	Resources []Resource  // in the order of the contract
	Errors    []ErrorCode // the codes that operations of the contract return, by status
	Events    []Event     // the event types, in the order of the contract
	Scopes    []string    // all scopes

	Objects map[string]map[string][]string // what the rows of lists contain: see reader.object
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

	Request         string   // component schema of the body, or "" if it has no fields
	RequestRequired bool     // whether the body must be sent
	Fields          []Field  // of the body, each at the end of its path
	RequestExample  string   // a body as indented JSON, or "" if it has no fields
	Response        string   // component schema of the response, or "" if it has no JSON
	Item            string   // component schema of the objects in data, if the response is a list
	Columns         []string // properties of Item that fit into a cell of a table, the most important ones first
	MediaType       string   // of the response: application/json, or "" if there is no content

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
	Array       bool     // several values, joined by commas
	Map         bool     // pairs, sent as name[key]=value
	Type        string   // of the value, or of each of the values: string, integer or boolean
	Format      string   // date or date-time, if Type is string
	Schema      string   // component schema of an enumeration, such as PaymentStatusInput, or ""
	Values      []string // of the enumeration
	Example     any
}

// Field is a value in the body of a request. Objects with properties have a field for each property: base_price.amount. Other objects, and
// arrays of objects, have one field.
type Field struct {
	Path        string // the names of the properties, joined by dots
	Type        string // of the value, or of each of the values: string, integer, boolean, or any for other JSON
	Array       bool   // several values
	Map         bool   // pairs of strings
	Required    bool   // of the schema, and of all objects that contain the field
	Nullable    bool
	Values      []string // of an enumeration
	Description string
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
