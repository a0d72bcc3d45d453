package domain

import (
	"fmt"
	"strings"
)

// InFlight is the number of things that the payment gateway has not completed for a tenant.
type InFlight struct {
	Intents int // open or processing
	Refunds int // being created, or still to be created
	Events  int // not processed
}

// Wait returns what an erasure has to wait for, as a sentence, or "" if nothing is in flight.
func (f InFlight) Wait() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{f.Intents, "payment intents"}, {f.Refunds, "refunds"}, {f.Events, "events"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", p.what, p.n))
		}
	}
	if parts == nil {
		return ""
	}
	return "The payment gateway has not completed everything (" + strings.Join(parts, ", ") + ")."
}
