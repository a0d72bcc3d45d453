package peers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/maypok86/otter/v2"
	"github.com/stripe/stripe-go/v76"

	"holdfast.dev/services/payments/internal/domain"
)

const (
	failureRate  = 0.5         // of an account's calls, with which its circuit opens
	failureCalls = 5           // fewer calls say nothing
	failureSpan  = time.Minute // in which the calls are counted
	openFor      = 2 * time.Second
	openJitter   = 0.3 // of openFor, so that the accounts are not probed at the same time
)

// circuit bounds the calls of one account, and fails them at once while the gateway does not serve the account.
type circuit struct {
	places  chan struct{} // one for each call that is under way
	breaker circuitbreaker.CircuitBreaker[any]
}

func newCircuit(id domain.AccountID, inFlight int) *circuit {
	return &circuit{
		places: make(chan struct{}, inFlight),
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

// circuit is the one of an account. All keys that are not connected yet share one.
func (s *Stripe) circuit(ctx context.Context, id domain.AccountID) (*circuit, error) {
	return s.circuits.Get(ctx, id, otter.LoaderFunc[domain.AccountID, *circuit](
		func(context.Context, domain.AccountID) (*circuit, error) { return newCircuit(id, s.inFlight), nil }))
}

// do makes one call for an account when fewer than its limit are under way and its circuit is not open. A *domain.BusyError of do
// itself says that nothing was sent.
func do[T any](ctx context.Context, s *Stripe, a domain.Account, call func(ctx context.Context) (T, error)) (T, error) {
	var none T
	c, err := s.circuit(ctx, a.ID)
	if err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := c.enter(limited); err != nil {
		return none, err
	}
	defer c.leave()
	failed := true // also when call panics: a probe must end
	defer func() { c.record(ctx, failed) }()
	out, err := call(limited)
	failed = unavailable(err)
	return out, outcome(err)
}

// enter takes a place and a permit; leave and record return them.
func (c *circuit) enter(ctx context.Context) error {
	if c.breaker.IsOpen() && c.breaker.RemainingDelay() > 0 {
		return c.busy()
	}
	select {
	case c.places <- struct{}{}:
	case <-ctx.Done():
		return &domain.BusyError{RetryAfter: busyPause}
	}
	if !c.breaker.TryAcquirePermit() {
		c.leave()
		return c.busy()
	}
	return nil
}

func (c *circuit) leave() { <-c.places }

func (c *circuit) busy() error {
	return &domain.BusyError{RetryAfter: max(busyPause, c.breaker.RemainingDelay())}
}

// record reports the end of a call to the breaker. That a caller has gone says nothing of the gateway, but it ends a probe.
func (c *circuit) record(ctx context.Context, failed bool) {
	switch {
	case !failed:
		c.breaker.RecordSuccess()
	case ctx.Err() == nil || c.breaker.IsHalfOpen():
		c.breaker.RecordFailure()
	}
}

// unavailable reports whether an error says that the gateway does not serve the account at the moment. An answer that it has kept
// of an earlier call says nothing of now.
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
