package peers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/stripe/stripe-go/v76"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
)

const (
	failureRate  = 0.5         // share of failed calls of an account that opens its circuit
	failureCalls = 5           // minimum number of calls
	failureSpan  = time.Minute // time span for counting the calls
	openFor      = 2 * time.Second
	openJitter   = 0.3 // share of openFor, so that the accounts are not probed at the same time
)

// circuit limits the calls of one account. It fails calls immediately while the gateway does not serve the account.
type circuit struct {
	places  chan struct{} // one for each call in progress
	workers chan struct{} // one for each call that no client waits for, so that clients always find a free place
	breaker circuitbreaker.CircuitBreaker[any]
}

func newCircuit(id domain.AccountID, inFlight int) *circuit {
	return &circuit{
		places: make(chan struct{}, inFlight), workers: make(chan struct{}, max(1, inFlight/2)),
		breaker: circuitbreaker.NewBuilder[any]().
			WithFailureRateThreshold(failureRate, failureCalls, failureSpan).
			WithSuccessThreshold(1). // one probe at a time
			WithDelay(openFor).WithJitterFactor(openJitter).
			OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
				slog.Warn("circuit breaker", slog.String("gateway_account", id.String()), slog.String("state", e.NewState.String()))
			}).
			Build(),
	}
}

// circuit returns the circuit of an account. All keys that are not connected yet share one.
func (s *Stripe) circuit(id domain.AccountID) *circuit {
	if c, ok := s.circuits.Get(id); ok {
		return c
	}
	return s.circuits.Add(id, newCircuit(id, s.inFlight))
}

// do sends one call for an account if the calls in progress are below the limit and the circuit is not open. It waits for that for
// up to half of a call's time. If do itself returns a *domain.BusyError, nothing was sent.
func do[T any](ctx context.Context, s *Stripe, a domain.Account, call func(ctx context.Context) (T, error)) (T, error) {
	var none T
	c := s.circuit(a.ID)
	leave, err := c.enter(ctx, s.timeout/2)
	if err != nil {
		return none, err
	}
	defer leave()
	failed, began := true, time.Now() // true also if call panics: a probe must end
	defer func() { c.record(failed && (ctx.Err() == nil || time.Since(began) >= s.timeout/2), failed) }()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out, err := call(limited)
	failed = unavailable(err)
	return out, outcome(err)
}

// enter waits up to within for a place and a permit; leave and record return them.
func (c *circuit) enter(ctx context.Context, within time.Duration) (leave func(), err error) {
	if c.breaker.IsOpen() && c.breaker.RemainingDelay() > 0 {
		return nil, c.busy()
	}
	semaphores := []chan struct{}{c.places}
	if caller.FromContext(ctx).Kind == "service" {
		semaphores = []chan struct{}{c.workers, c.places}
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	taken := 0
	leave = func() {
		for _, places := range semaphores[:taken] {
			<-places
		}
	}
	for _, places := range semaphores {
		select {
		case places <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, &domain.BusyError{RetryAfter: busyPause}
		}
	}
	if !c.breaker.TryAcquirePermit() {
		leave()
		return nil, c.busy()
	}
	return leave, nil
}

func (c *circuit) busy() error {
	return &domain.BusyError{RetryAfter: max(busyPause, c.breaker.RemainingDelay())}
}

// record reports the end of a call to the breaker. If the caller disconnected early, the call does not count, because it shows
// nothing about the gateway. It ends a probe, though.
func (c *circuit) record(counts, failed bool) {
	switch {
	case !failed:
		c.breaker.RecordSuccess()
	case counts || c.breaker.IsHalfOpen():
		c.breaker.RecordFailure()
	}
}

// unavailable reports whether an error means that the gateway does not serve the account at the moment. A stored response to an
// earlier call does not show the current state.
func unavailable(err error) bool {
	var e *stripe.Error
	if err == nil || !errors.As(err, &e) {
		return err != nil
	}
	if e.HTTPStatusCode != http.StatusTooManyRequests && e.HTTPStatusCode < http.StatusInternalServerError {
		return false
	}
	return e.LastResponse == nil || e.LastResponse.Header.Get("Idempotent-Replayed") != "true"
}
