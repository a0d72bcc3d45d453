// Package operations is the table of the operations of the contract, from which the commands are built.
package operations

// Resource is a group of operations: bookings.
type Resource struct {
	Name        string // payment-intents
	Description string
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

// Operation is one request.
type Operation struct {
	Name        string // list-payments
	Kind        Kind
	Method      string // GET
	Path        string // /bookings/{id}, relative to the base URL
	Summary     string // Create a booking
	Description string

	CSV         bool   // the list is also available as CSV
	List        bool   // the rows are in data
	Public      bool   // takes no credential
	Conditional bool   // takes If-Match
	Body        bool   // takes a body
	MediaType   string // if Kind is Raw

	Item string // schema of the rows in Objects, if List

	Scopes       []string
	Columns      []string // of a table, the most important ones first
	PathParams   []Param
	QueryParams  []Param
	HeaderParams []Param
	Fields       []Param // of the body
}

// Write reports whether the operation changes something.
func (o Operation) Write() bool { return o.Method != "GET" }

// Param is a parameter of the path, the query or the header, or a value in the body.
type Param struct {
	Name        string // as it is sent: customer_id. In the body, the path of the property: base_price.amount
	Type        string // string, integer, boolean, or any for other JSON
	Array       bool   // several values: an array in the body, otherwise joined by commas
	Map         bool   // pairs of strings: an object in the body, otherwise sent as name[key]=value
	Required    bool
	Nullable    bool
	Values      []string // that the API accepts; empty means any
	Description string
}
