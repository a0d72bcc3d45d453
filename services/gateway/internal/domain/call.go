package domain

import "holdfast.dev/libs/caller"

// Call is one request to a service on behalf of a caller. Nothing else of the client's request is sent.
type Call struct {
	Caller      caller.Caller
	Encoded     caller.Encoded // Caller without its request id
	Method      string
	Path        string // escaped, under /api/v1 for every base
	Query       string // raw
	Body        []byte
	ContentType string
	Key         string // Idempotency-Key, "" without one
	Fingerprint []byte // of the request, if it has a key
	Prefer      []string
	IfMatch     []string
	IfNoneMatch []string
	Traceparent string
	Signature   string // Stripe-Signature of a payment gateway's event
	Address     string // of the client
	Accept      string // for streams, like LastEventID
	Whole       bool   // a stream that is useless without its end: a stop aborts it instead of ending it normally
	LastEventID string
	Passed      map[string][]string // additional headers of a browser, for OAuth's pages and endpoints; nil for every other call
}

// Statement returns the part of the signed caller that describes a call to target.
func (c *Call) Statement(target string) caller.Call {
	return caller.Call{
		Target: target, Method: c.Method, Path: c.Path, RequestID: c.Caller.RequestID, Fingerprint: c.Fingerprint,
	}
}
