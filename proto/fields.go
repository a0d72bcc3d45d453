package proto

// Fields are the names of the fields of an operation of the contract, in the contract's order.
type Fields struct {
	Body     []string // of its request
	Response []string // of its response, if it is an object
}
