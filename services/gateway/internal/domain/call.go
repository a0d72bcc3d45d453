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
	IfMatch     []string
	IfNoneMatch []string
	Traceparent string
	Address     string // the client's
	Accept      string // of a stream, as LastEventID is
	LastEventID string
}
