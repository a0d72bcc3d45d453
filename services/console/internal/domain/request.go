package domain

import "net/url"

// Request is one call of an operation of the public contract.
type Request struct {
	Operation string   // operationId
	Params    []string // values of the parameters in its path, from left to right
	Query     url.Values
	Body      any    // nil: none
	Version   int64  // required version of the resource; 0: any
	Key       string // Idempotency-Key; "": none
}
