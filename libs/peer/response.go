package peer

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast.dev/libs/apperr"
)

var kinds = map[int]apperr.Kind{
	http.StatusBadRequest:            apperr.BadRequest,
	http.StatusForbidden:             apperr.Forbidden,
	http.StatusNotFound:              apperr.NotFound,
	http.StatusMethodNotAllowed:      apperr.MethodNotAllowed,
	http.StatusConflict:              apperr.Conflict,
	http.StatusPreconditionFailed:    apperr.PreconditionFailed,
	http.StatusRequestEntityTooLarge: apperr.TooLarge,
	http.StatusUnprocessableEntity:   apperr.Invalid,
	http.StatusTooManyRequests:       apperr.RateLimited,
	http.StatusInternalServerError:   apperr.Internal,
	http.StatusBadGateway:            apperr.BadGateway,
	http.StatusServiceUnavailable:    apperr.Unavailable,
	http.StatusGatewayTimeout:        apperr.Timeout,
}

type envelope struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Param   string `json:"param"`

		Type      string `json:"type"`
		DocURL    string `json:"doc_url"`
		RequestID string `json:"request_id"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"error"`
	Errors map[string][]string `json:"errors"`
}

// refused decodes the envelope of a response outside 2xx. A rejected signature is a fault of this service, so it becomes an
// internal error, like a response without an envelope. A 5xx without an envelope becomes ErrUnavailable, because it comes from a
// proxy in between.
func (c *Client) refused(a response) error {
	var e envelope
	kind, known := kinds[a.status]
	cause := fmt.Errorf("%s returned %d", c.Target, a.status)
	if err := json.Unmarshal(a.body, &e); err != nil || e.Error.Code == "" || !known {
		if a.status >= http.StatusInternalServerError {
			return apperr.ErrUnavailable.WithCause(cause)
		}
		return cause
	}
	out := apperr.New(kind, e.Error.Code, e.Error.Message)
	out.Fields = fields(e)
	for name, value := range e.Error.Rest {
		if n, err := strconv.Atoi(string(value)); err == nil {
			out = out.WithExtra(name, n)
		}
	}
	if s, err := strconv.Atoi(a.retryAfter); err == nil {
		out.RetryAfter = time.Duration(s) * time.Second
	}
	out.Final = a.final
	return out.WithCause(cause)
}

// fields returns the invalid fields, starting with param, the first invalid one. The order of the others is unknown.
func fields(e envelope) []apperr.FieldError {
	names := make([]string, 0, len(e.Errors))
	for name := range e.Errors {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		switch e.Error.Param {
		case a:
			return -1
		case b:
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
	var out []apperr.FieldError
	for _, name := range names {
		for _, m := range e.Errors[name] {
			out = append(out, apperr.FieldError{Field: name, Message: m})
		}
	}
	return out
}
