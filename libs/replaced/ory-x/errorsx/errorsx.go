// Package errorsx contains what fosite uses of the original.
package errorsx

import "github.com/pkg/errors"

// The optional methods of an OAuth error.
type (
	// StatusCodeCarrier has an HTTP status.
	StatusCodeCarrier interface{ StatusCode() int }
	// RequestIDCarrier has the id of the request.
	RequestIDCarrier interface{ RequestID() string }
	// ReasonCarrier has a reason.
	ReasonCarrier interface{ Reason() string }
	// DebugCarrier has details for developers.
	DebugCarrier interface{ Debug() string }
	// StatusCarrier has the text of the HTTP status.
	StatusCarrier interface{ Status() string }
)

// Cause returns the innermost error below err.
func Cause(err error) error {
	return errors.Cause(err)
}

// WithStack adds the stack to err if it has none.
func WithStack(err error) error {
	if traced, ok := err.(interface{ StackTrace() errors.StackTrace }); ok && len(traced.StackTrace()) > 0 {
		return err
	}
	return errors.WithStack(err)
}
