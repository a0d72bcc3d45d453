package holdfast

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrorCode is a code of an error of the API. The values are errors, so that you can compare with errors.Is:
//
//	errors.Is(err, holdfast.ErrSlotUnavailable)
type ErrorCode string

// Error returns the code.
func (c ErrorCode) Error() string { return string(c) }

// Error is an error that the API returned.
type Error struct {
	Status    int                 // of the HTTP response
	Type      string              // such as validation_error
	Code      ErrorCode           // "" if the response is not from the API, for example from a proxy
	Message   string              // in English
	Param     string              // the first invalid field, of validation errors
	Errors    map[string][]string // the messages by field, of validation errors
	DocURL    string              // describes the code
	RequestID string              // for support
	Header    http.Header
	Body      []byte // the whole response, with fields that this version of the SDK does not know
}

// Error returns the message, the code and the request ID.
func (e *Error) Error() string {
	text := fmt.Sprintf("holdfast: %d", e.Status)
	if e.Code != "" {
		text += " " + string(e.Code)
	}
	text += ": " + e.Message
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Is reports whether target is the error's code.
func (e *Error) Is(target error) bool {
	code, ok := target.(ErrorCode)
	return ok && code == e.Code
}

// newError returns the error of a response.
func newError(r *http.Response, body []byte) *Error {
	e := &Error{Status: r.StatusCode, Header: r.Header, Body: body, RequestID: r.Header.Get("X-Request-Id")}
	var document struct {
		Errors map[string][]string `json:"errors"`
		Error  struct {
			Type      string    `json:"type"`
			Code      ErrorCode `json:"code"`
			Message   string    `json:"message"`
			Param     string    `json:"param"`
			DocURL    string    `json:"doc_url"`
			RequestID string    `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &document); err != nil || document.Error.Code == "" {
		e.Message = http.StatusText(r.StatusCode)
		return e
	}
	d := document.Error
	e.Type, e.Code, e.Message, e.Param, e.DocURL, e.Errors = d.Type, d.Code, d.Message, d.Param, d.DocURL, document.Errors
	if d.RequestID != "" {
		e.RequestID = d.RequestID
	}
	return e
}

// ConnectionError means that no response arrived: the connection failed, or the time was over. A write may have run. To find out, send
// it again with the same key.
type ConnectionError struct {
	Method, Path   string
	Attempts       int
	IdempotencyKey string // pass it to WithIdempotencyKey to repeat the write; "" if the operation takes none
	Err            error  // the cause of the last attempt
}

// Error describes the request and the cause.
func (e *ConnectionError) Error() string {
	text := fmt.Sprintf("holdfast: %s %s: no response after %d attempt", e.Method, e.Path, e.Attempts)
	if e.Attempts != 1 {
		text += "s"
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConnectionError) Unwrap() error { return e.Err }

// errTimeout is the cause of an attempt that took too long.
var errTimeout = errors.New("the attempt timed out")
