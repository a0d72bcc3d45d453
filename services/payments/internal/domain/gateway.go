package domain

import (
	"fmt"
	"time"
)

// RefusedError is a definite refusal of the gateway: nothing has happened there.
type RefusedError struct {
	Failure

	Param  string // the gateway's name of the parameter; "" for none
	Unread bool   // the gateway has refused the keys: it has not checked whether the attempt was made before
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("gateway refused: %s: %s", e.Code, e.Message)
}

// BusyError reports that the gateway takes no request at the moment, and has done nothing.
type BusyError struct{ RetryAfter time.Duration }

// Error implements error.
func (e *BusyError) Error() string { return "gateway takes no request at the moment" }

// BrokenError is a response with which the gateway ended the attempt without saying what it has done. It stores this response: the
// same attempt gets it again.
type BrokenError struct{ Status int }

// Error implements error.
func (e *BrokenError) Error() string { return fmt.Sprintf("gateway failed with status %d", e.Status) }

// CallKey returns the idempotency key of an attempt at the gateway. Repeating an attempt with the same key has one effect. The key
// names the kind of the call, because a row may have calls of several kinds.
func CallKey(id IntentID, what string, attempt int) string {
	return fmt.Sprintf("%s:%s:%d", id, what, attempt)
}
