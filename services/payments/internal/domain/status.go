package domain

import (
	"slices"
	"strings"
)

// Status is the state of an intent: one of Stripe's states, or one of two states before the gateway knows the intent.
type Status string

// The states of an intent. Creating and Refused are never shown.
const (
	Creating              Status = "creating" // the gateway was called, and its response is unknown
	Refused               Status = "refused"  // the gateway refused to create it
	RequiresPaymentMethod Status = "requires_payment_method"
	RequiresConfirmation  Status = "requires_confirmation"
	RequiresAction        Status = "requires_action"
	Processing            Status = "processing"
	RequiresCapture       Status = "requires_capture"
	Canceled              Status = "canceled"
	Succeeded             Status = "succeeded"
)

// Action is an action of a client on an intent that the gateway knows.
type Action string

// The actions of clients. All other changes are made by the payer or the gateway.
const (
	Cancel  Action = "cancel"
	Capture Action = "capture"
)

// actions maps each state to the actions that Stripe allows.
var actions = map[Status][]Action{
	RequiresPaymentMethod: {Cancel},
	RequiresConfirmation:  {Cancel},
	RequiresAction:        {Cancel},
	Processing:            {},
	RequiresCapture:       {Cancel, Capture},
	Canceled:              {},
	Succeeded:             {},
}

// Check returns an error if the state does not allow the action.
func (s Status) Check(a Action) error {
	names := make([]string, 0, len(actions[s]))
	for _, can := range actions[s] {
		if can == a {
			return nil
		}
		names = append(names, string(can))
	}
	possible := "none"
	if len(names) > 0 {
		possible = strings.Join(names, ", ")
	}
	return ErrTransition.WithMessage("A payment intent that is %s does not allow this. Possible actions: %s.", s, possible).WithField("status")
}

// Known reports whether the gateway knows the intent.
func (s Status) Known() bool { return s != Creating && s != Refused }

// Open reports whether the intent can still be paid and can be canceled.
func (s Status) Open() bool { return slices.Contains(actions[s], Cancel) }

// Final reports whether no state follows.
func (s Status) Final() bool { return s == Canceled || s == Succeeded }

// KnownStatus reports whether a state that a gateway reports is one of Stripe's.
func KnownStatus(s Status) bool {
	_, ok := actions[s]
	return ok
}
