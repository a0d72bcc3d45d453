package peer

import (
	"slices"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// The policy of a Breaker.
const (
	failureRate  = 0.5 // share of failed calls at which the breaker opens
	failureCalls = 20  // minimum number of calls for a failure rate
	failureSpan  = 10 * time.Second
	openFor      = time.Second // until a call is attempted again
	closingCalls = 3           // calls that must receive a response before the breaker closes
)

// The limits for the time-outs of one client that a breaker counts. They are lower than the number that opens it, so that slow
// requests of one client cannot block a service for others, but those of several clients can.
const (
	timeoutsPerClient = 5
	timeoutWindow     = 10 * time.Second
)

// ErrOpen reports that no request was sent, because the breaker is open.
var ErrOpen = circuitbreaker.ErrOpen

// Breaker is the circuit breaker of a service, in the gateway and in the services that call it. NewBreaker creates one.
type Breaker struct {
	circuit  circuitbreaker.CircuitBreaker[any]
	timeouts timeouts
}

// NewBreaker creates a closed breaker. changed is called with each new state: closed, open, half-open.
func NewBreaker(changed func(state string)) *Breaker {
	return &Breaker{circuit: circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(failureRate, failureCalls, failureSpan).
		WithSuccessThreshold(closingCalls).
		WithDelay(openFor).
		OnStateChanged(func(e circuitbreaker.StateChangedEvent) { changed(e.NewState.String()) }).
		Build()}
}

// Open reports whether the next call fails immediately.
func (b *Breaker) Open() bool { return b.circuit.IsOpen() && b.circuit.RemainingDelay() > 0 }

// Begin acquires a permit for one call, which Responded, Unavailable or Late releases. It returns ErrOpen if there is none.
func (b *Breaker) Begin() error {
	if !b.circuit.TryAcquirePermit() {
		return ErrOpen
	}
	return nil
}

// Responded ends a call that received a response with any status, because the data of one tenant can cause a 500. It also ends a
// call whose result does not depend on the service.
func (b *Breaker) Responded() { b.circuit.RecordSuccess() }

// Unavailable ends a call without a connection, or whose connection broke.
func (b *Breaker) Unavailable() { b.circuit.RecordFailure() }

// Late ends a call that timed out. Only a few calls of each client count, because the client's own requests may cause the
// time-outs. A client is a tenant or, without a credential, an address. A call without a client always counts.
func (b *Breaker) Late(client string) {
	if client == "" || b.timeouts.count(client) || b.circuit.IsHalfOpen() {
		b.circuit.RecordFailure()
	}
}

// timeouts counts the time-outs of each client. The zero value is ready.
type timeouts struct {
	mu      sync.Mutex
	swept   time.Time              // guarded by mu
	counted map[string][]time.Time // guarded by mu: the counted time-outs in the window, by client
}

// count reports whether a breaker counts a time-out of the client, and stores the counted ones. At most timeoutsPerClient count
// within any timeoutWindow.
func (t *timeouts) count(client string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	over := func(at time.Time) bool { return now.Sub(at) >= timeoutWindow }
	if over(t.swept) { // delete clients whose time-outs are all outside the window
		t.swept = now
		for name, list := range t.counted {
			if over(list[len(list)-1]) {
				delete(t.counted, name)
			}
		}
	}
	list := slices.DeleteFunc(t.counted[client], over)
	counts := len(list) < timeoutsPerClient
	if counts {
		list = append(list, now)
	}
	if t.counted == nil {
		t.counted = map[string][]time.Time{}
	}
	t.counted[client] = list
	return counts
}
