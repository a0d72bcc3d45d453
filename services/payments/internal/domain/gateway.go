package domain

import (
	"fmt"
	"time"
)

// ChargeDisputed is the gateway's code for the refusal to refund a payment that a payer disputes.
const ChargeDisputed = "charge_disputed"

// RefusedError is a definite refusal of the gateway. The call had no effect there.
type RefusedError struct {
	Failure

	Param  string // the gateway's name of the parameter; "": none
	Unread bool   // the gateway refused the keys: it did not check whether the attempt was made before
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("gateway refused: %s: %s", e.Code, e.Message)
}

// BusyError reports that the gateway currently accepts no requests and has done nothing.
type BusyError struct{ RetryAfter time.Duration }

// Error implements error.
func (e *BusyError) Error() string { return "gateway takes no request at the moment" }

// BrokenError is a response that ends the attempt without reporting what the gateway has done. The gateway stores this response,
// and returns it again for the same attempt.
type BrokenError struct{ Status int }

// Error implements error.
func (e *BrokenError) Error() string { return fmt.Sprintf("gateway failed with status %d", e.Status) }

// CallKey returns the idempotency key of an attempt at the gateway. Repeated calls with the same key have one effect. The key
// contains the kind of the call, because a row can have calls of several kinds.
func CallKey(id IntentID, what string, attempt int) string {
	return fmt.Sprintf("%s:%s:%d", id, what, attempt)
}
