// Package httpx is the HTTP server of a service: it checks each request against the contract in the order that all services share,
// runs the handler, and writes the response. It contains the only code that writes errors, and the checks that the gateway also
// makes.
package httpx

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

// statuses is the only map from a kind of error to its HTTP status.
var statuses = map[apperr.Kind]int{
	apperr.Internal:           http.StatusInternalServerError,
	apperr.BadRequest:         http.StatusBadRequest,
	apperr.Unauthenticated:    http.StatusUnauthorized,
	apperr.Forbidden:          http.StatusForbidden,
	apperr.NotFound:           http.StatusNotFound,
	apperr.MethodNotAllowed:   http.StatusMethodNotAllowed,
	apperr.Conflict:           http.StatusConflict,
	apperr.PreconditionFailed: http.StatusPreconditionFailed,
	apperr.TooLarge:           http.StatusRequestEntityTooLarge,
	apperr.Invalid:            http.StatusUnprocessableEntity,
	apperr.RateLimited:        http.StatusTooManyRequests,
	apperr.BadGateway:         http.StatusBadGateway,
	apperr.Unavailable:        http.StatusServiceUnavailable,
	apperr.Timeout:            http.StatusGatewayTimeout,
}

// HeaderShouldRetry is "false" in each error response after which a retry of the same request cannot succeed.
const HeaderShouldRetry = "Service-Should-Retry"

// StatusOf returns the HTTP status of a kind. An unknown kind is 500.
func StatusOf(kind apperr.Kind) int {
	if s, ok := statuses[kind]; ok {
		return s
	}
	return http.StatusInternalServerError
}

func typeOf(status int) string {
	switch {
	case status == http.StatusUnprocessableEntity:
		return "validation_error"
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "api_error"
	default:
		return "invalid_request_error"
	}
}

type errorBody struct {
	Type      string `json:"type"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Param     string `json:"param,omitempty"`
	DocURL    string `json:"doc_url"`
	RequestID string `json:"request_id"`

	Extra map[string]int `json:",embed"`
}

type envelope struct {
	Message string     `json:"message,omitempty"`
	Errors  *fieldList `json:"errors,omitempty"`
	Error   errorBody  `json:"error"`
}

// fieldList writes fields as an object in their order. A map would lose the order.
type fieldList []apperr.FieldError

// MarshalJSON implements json.Marshaler: each field once, with the list of its messages.
func (l fieldList) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	done := map[string]bool{}
	for _, f := range l {
		if done[f.Field] {
			continue
		}
		done[f.Field] = true
		var messages []string
		for _, g := range l {
			if g.Field == f.Field {
				messages = append(messages, g.Message)
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, encode(f.Field)...), ':')
		out = append(out, encode(messages)...)
	}
	return append(out, '}'), nil
}

// encode calls Encode for strings and structs of strings, which cannot fail.
func encode(v any) []byte {
	b, err := contract.Encode(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

// WriteError responds with err in the public envelope: an *apperr.Error as it is, every other error as internal_error. Its doc_url
// begins with publicURL, the URL at which clients reach the gateway. It sets Content-Type, X-Request-Id and the headers of the
// error. The cause is never shown. Every 422 has message, errors and param, and its message begins with the name of the first
// field.
func WriteError(w http.ResponseWriter, publicURL, requestID string, err error) {
	e := apperr.As(err)
	status := StatusOf(e.Kind)
	h := w.Header()
	setHeaders(h, e, status)
	h.Set("Content-Type", "application/json")
	h.Set("X-Request-Id", requestID)
	h.Set("Cache-Control", "no-store")
	body := encode(envelopeOf(e, status, docURL(publicURL, e.Code), requestID))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails when the client is gone
}

func setHeaders(h http.Header, e *apperr.Error, status int) {
	for k, v := range e.Header {
		h.Set(k, v)
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if e.Final || proto.FinalCode(e.Code) {
		h.Set(HeaderShouldRetry, "false")
	}
	if status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		challenge := `Bearer realm="holdfast"`
		if e.Code != "missing_credential" {
			challenge += `, error="invalid_token"`
		}
		h.Set("WWW-Authenticate", challenge)
	}
}

// docURL returns the URL of the documentation of a code.
func docURL(publicURL, code string) string {
	return strings.TrimRight(publicURL, "/") + proto.ErrorsPage + "#" + code
}

// Param returns the param of the response to err, or "".
func Param(err error) string {
	if e := apperr.As(err); e.Kind == apperr.Invalid {
		return paramOf(e)
	}
	return ""
}

// paramOf returns the param of a 422. Every 422 has one.
func paramOf(e *apperr.Error) string {
	if len(e.Fields) > 0 {
		return e.Fields[0].Field
	}
	return "body"
}

func envelopeOf(e *apperr.Error, status int, doc, requestID string) envelope {
	env := envelope{Error: errorBody{Type: typeOf(status), Code: e.Code, Message: e.Message, DocURL: doc, RequestID: requestID, Extra: e.Extra}}
	if status != http.StatusUnprocessableEntity {
		return env
	}
	fields := fieldList(e.Fields)
	if len(fields) == 0 {
		fields = fieldList{{Field: paramOf(e), Message: e.Message}}
	}
	env.Error.Param = paramOf(e)
	env.Message = e.Message
	if len(e.Fields) > 0 {
		env.Message = fields[0].Field + ": " + fields[0].Message
	}
	env.Error.Message = env.Message
	switch more := len(fields) - 1; {
	case more == 1:
		env.Message += " (and 1 more error)"
	case more > 1:
		env.Message += fmt.Sprintf(" (and %d more errors)", more)
	}
	env.Errors = &fields
	return env
}
