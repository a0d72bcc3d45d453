// Package apperr defines the only error type that crosses layers: a kind, which determines the HTTP status, and a stable public
// code. A handler returns every other error as an internal error.
package apperr

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the coarse class of an error. The map from Kind to HTTP status is in httpx.
type Kind int

// The kinds, named after what the caller did or encountered.
const (
	Internal Kind = iota
	BadRequest
	Unauthenticated
	Forbidden
	NotFound
	MethodNotAllowed
	Conflict
	PreconditionFailed
	TooLarge
	Invalid
	RateLimited
	BadGateway
	Unavailable
	Timeout
)

// FieldError is one failed field: the dotted path as sent and a sentence that describes what is allowed.
type FieldError struct {
	Field   string
	Message string
}

// Error is a public error: Code is stable, Message is English for people.
type Error struct {
	Kind    Kind
	Code    string
	Message string
	// Fields is filled on Invalid only, in the contract's property order.
	Fields []FieldError
	// RetryAfter, when above zero, becomes the Retry-After header, rounded up to seconds.
	RetryAfter time.Duration
	// Final reports that a retry of the same request cannot succeed, although the code alone does not say so.
	Final bool
	// Header holds further response headers, such as Allow or WWW-Authenticate.
	Header map[string]string
	// Extra holds further members of the public error object that ErrorBody of the contract declares. All are numbers.
	Extra map[string]int

	cause error
}

// New declares an error. Declared errors are values to compare with errors.Is and are never changed.
func New(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Field creates the 422 invalid_request of one field.
func Field(field, format string, args ...any) *Error {
	return Fields([]FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

// Fields creates the 422 invalid_request of several fields; fields must not be empty.
func Fields(fields []FieldError) *Error {
	return &Error{Kind: Invalid, Code: "invalid_request", Message: fields[0].Message, Fields: fields}
}

// Join combines several errors on fields into one error. It returns nil when there are none. An error of another kind is returned
// alone.
func Join(verdicts ...error) error {
	var failed []FieldError
	for _, err := range verdicts {
		var e *Error
		switch {
		case err == nil:
		case errors.As(err, &e) && e.Kind == Invalid && e.Code == "invalid_request":
			failed = append(failed, e.Fields...)
		default:
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return Fields(failed)
}

// Error implements error.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Code + ": " + e.Message + ": " + e.cause.Error()
	}
	return e.Code + ": " + e.Message
}

// Unwrap returns the cause, which is logged and never shown.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an *Error of the same code.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// WithCause returns a copy that carries a cause for the log.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// WithField returns a copy that names the invalid field, for 422s with their own code.
func (e *Error) WithField(field string) *Error {
	c := *e
	c.Fields = []FieldError{{Field: field, Message: e.Message}}
	return &c
}

// WithMessage returns a copy with another message.
func (e *Error) WithMessage(format string, args ...any) *Error {
	c := *e
	c.Message = fmt.Sprintf(format, args...)
	return &c
}

// WithRetryAfter returns a copy with a Retry-After.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// WithoutRetry returns a copy that tells clients not to retry.
func (e *Error) WithoutRetry() *Error {
	c := *e
	c.Final = true
	return &c
}

// WithHeader returns a copy with one more response header.
func (e *Error) WithHeader(key, value string) *Error {
	c := *e
	c.Header = map[string]string{key: value}
	for k, v := range e.Header {
		if k != key {
			c.Header[k] = v
		}
	}
	return &c
}

// WithExtra returns a copy with one more member of the public error object.
func (e *Error) WithExtra(name string, value int) *Error {
	c := *e
	c.Extra = map[string]int{name: value}
	for k, v := range e.Extra {
		if k != name {
			c.Extra[k] = v
		}
	}
	return &c
}

// As returns the *Error in err's chain. For any other error it returns internal_error with err as its cause.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return ErrInternal.WithCause(err)
}

// Errors that more than one service returns.
var (
	ErrInternal    = New(Internal, "internal_error", "Something went wrong on our side. It is safe to retry with backoff.")
	ErrUnavailable = New(Unavailable, "unavailable", "The service is temporarily unavailable. Retry shortly.").WithRetryAfter(time.Second)
	ErrTimeout     = New(Timeout, "upstream_timeout", "The service took too long to respond. Retry with the same Idempotency-Key.")
	ErrMode        = New(Forbidden, "mode_mismatch", "The resource belongs to the other mode. Use a key of that mode.")
	ErrVersion     = New(PreconditionFailed, "version_mismatch", "The resource has changed since the version in If-Match.")
	ErrMismatch    = New(Invalid, "idempotency_mismatch", "This Idempotency-Key was already used with a different request.").WithField("Idempotency-Key")
	ErrInProgress  = New(Conflict, "idempotency_in_progress", "A request with this Idempotency-Key is still running. Retry shortly.").WithRetryAfter(time.Second)
	ErrCursor      = New(BadRequest, "invalid_cursor", "The cursor is not valid for this list. Start again without it.")
)
