package domain

import "strings"

// The classes of requests for metering, at most eight characters long.
const (
	ClassRead     = "read"
	ClassWrite    = "write"
	ClassExport   = "export"   // a list as CSV
	ClassStream   = "stream"   // an event stream
	ClassRejected = "rejected" // the status 403 or 429
	ClassInvalid  = "invalid"  // the status 401: the credential was revoked or expired
)

// RequestClass returns the class of a request with a response of a status and a content type.
func RequestClass(method string, status int, contentType string) string {
	switch {
	case status == 401:
		return ClassInvalid
	case status == 403, status == 429:
		return ClassRejected
	case method != "GET" && method != "HEAD":
		return ClassWrite
	case strings.HasPrefix(contentType, "text/event-stream"):
		return ClassStream
	case strings.HasPrefix(contentType, "text/csv"):
		return ClassExport
	default:
		return ClassRead
	}
}
