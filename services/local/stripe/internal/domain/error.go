// Package domain contains Stripe's objects in the format of API version 2023-10-16, and the rules that need no storage: test
// cards, currencies, statuses, and fees.
package domain

import (
	"encoding/json"
	"net/http"
)

// APIVersion is the only version of Stripe's API that the stand-in supports.
const APIVersion = "2023-10-16"

// Stripe's error types.
const (
	TypeAPI         = "api_error"
	TypeCard        = "card_error"
	TypeIdempotency = "idempotency_error"
	TypeInvalid     = "invalid_request_error"
)

// Error is Stripe's error envelope without its outer object.
type Error struct {
	Charge        string          `json:"charge,omitempty"`
	Code          string          `json:"code,omitempty"`
	DeclineCode   string          `json:"decline_code,omitempty"`
	DocURL        string          `json:"doc_url,omitempty"`
	Message       string          `json:"message"`
	Param         string          `json:"param,omitempty"`
	PaymentIntent any             `json:"payment_intent,omitempty"`
	PaymentMethod json.RawMessage `json:"payment_method,omitempty"`
	RequestLogURL string          `json:"request_log_url,omitempty"`
	Type          string          `json:"type"`

	Status int `json:"-"` // HTTP
	// Validation is true if the operation did not begin to execute. Such a response is not stored under the idempotency key.
	Validation bool `json:"-"`
}

func (e *Error) Error() string { return e.Type + ": " + e.Message }

// Invalid returns a 400 of an operation that began to execute.
func Invalid(code, param, message string) *Error {
	e := &Error{Type: TypeInvalid, Code: code, Param: param, Message: message, Status: http.StatusBadRequest}
	if code != "" {
		e.DocURL = "https://stripe.com/docs/error-codes/" + hyphens(code)
	}
	return e
}

// BadParam returns a 400 of the validation before execution.
func BadParam(code, param, message string) *Error {
	e := Invalid(code, param, message)
	e.Validation = true
	return e
}

// Missing returns the error for an object that does not exist: 404 for the object in the path, 400 for one in a parameter.
func Missing(status int, what, id, param string) *Error {
	e := Invalid("resource_missing", param, "No such "+what+": '"+id+"'")
	e.Status = status
	return e
}

// UnexpectedState returns the error for an operation that the status of an intent does not allow.
func UnexpectedState(pi *Intent, message string) *Error {
	e := Invalid("payment_intent_unexpected_state", "", message)
	e.PaymentIntent = pi
	return e
}

func hyphens(code string) string {
	text := []byte(code)
	for i, c := range text {
		if c == '_' {
			text[i] = '-'
		}
	}
	return string(text)
}
