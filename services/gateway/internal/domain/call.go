package domain

import "holdfast.dev/libs/caller"

// Call is one request to a service, on behalf of a caller. Nothing else of the client's request travels.
type Call struct {
	Caller      caller.Caller
	Encoded     caller.Encoded // Caller without its request id
	Method      string
	Path        string // escaped, under /api/v1 whatever base the client used
	Query       string // raw
	Body        []byte
	ContentType string
	Key         string // Idempotency-Key, "" without one
	Fingerprint []byte // of the request, where it has a key
	Prefer      []string
	IfMatch     []string
	IfNoneMatch []string
	Traceparent string
	Address     string // the client's
	Accept      string // of a stream, as LastEventID is
	LastEventID string
}

// Statement is what the signed caller of a call to target says of it.
func (c *Call) Statement(target string) caller.Call {
	return caller.Call{
		Target: target, Method: c.Method, Path: c.Path, RequestID: c.Caller.RequestID, Fingerprint: c.Fingerprint,
	}
}
