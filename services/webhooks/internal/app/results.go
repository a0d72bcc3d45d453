package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// result is a claim with the result of its attempt.
type result struct {
	claim    store.Claim
	response *domain.Response // nil if nothing was sent: the event no longer exists, or the body could not be signed
	unsigned bool             // the body could not be signed, which is not the receiver's fault: the attempt is repeated
}

// failed reports whether no attempt was made, or the attempt was not a success.
func (r result) failed() bool { return r.response == nil || !r.response.OK() }

// unsignedPause is the time until the next attempt of a delivery that could not be signed.
const unsignedPause = time.Minute

// attempt sends one delivery, signed with every valid secret.
func (d *Dispatcher) attempt(ctx context.Context, queue store.ReadyQueue, c store.Claim) result {
	if c.Body == nil {
		return result{claim: c}
	}
	now := d.Now()
	secrets, err := store.Secrets(d.Box, c.Key(), queue.SecretIDs, queue.Sealed)
	var own domain.EndpointHeaders
	if err == nil {
		own, err = store.OpenHeaders(d.Box, c.Key(), queue.Headers)
	}
	if err != nil {
		d.Log.Error("secrets of an endpoint not decrypted", slog.String("endpoint", c.EndpointID.String()), slog.Any("error", err))
		d.Metrics.unsigned.Inc()
		return result{claim: c, unsigned: true}
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	d.Metrics.first(c, now)
	a := d.Sender.Send(ctx, domain.Outgoing{
		URL: queue.URL, Live: c.Livemode, Body: c.Body, Own: own,
		Headers: domain.Headers(c.EventID.String(), c.EventType, c.DeliveryID.String(), c.Attempts+1, c.Body, now, secrets...),
	})
	a.At = now
	d.Metrics.count(a)
	return result{claim: c, response: &a}
}

// The sizes and times of writing results.
const (
	maxResults    = 500 // of one transaction
	rewriteEvery  = 200 * time.Millisecond
	stopWriteTime = 4 * time.Second // how long a stopping process tries to write a batch
)

// writeResults writes results until stop is closed and none is left. It writes all waiting results in one transaction.
func (d *Dispatcher) writeResults(stop <-chan struct{}) {
	for {
		select {
		case first := <-d.results:
			d.writeBatch(d.gather(first), stop)
		case <-stop:
			for len(d.results) > 0 {
				d.writeBatch(d.gather(<-d.results), stop)
			}
			return
		}
	}
}

// gather returns a result together with the waiting ones, up to maxResults.
func (d *Dispatcher) gather(first result) []result {
	batch := []result{first}
	for len(batch) < maxResults {
		select {
		case r := <-d.results:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// writeBatch retries until the batch is written. Meanwhile no pass claims deliveries, because the results of previous ones must be
// written first. A stopping process gives up after stopWriteTime. Its claims then expire.
func (d *Dispatcher) writeBatch(batch []result, stop <-chan struct{}) {
	var deadline time.Time
	for {
		ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
		err := d.complete(ctx, batch)
		cancel()
		if err == nil {
			if len(d.results) == 0 { // otherwise the next batch also waited, and its claims may have expired
				d.writeFailing.Store(false)
			}
			d.Wake()
			return
		}
		d.writeFailing.Store(true)
		d.Log.Warn("delivery results not recorded; trying again", slog.Int("deliveries", len(batch)), slog.Any("error", err))
		select {
		case <-stop:
			if deadline.IsZero() {
				deadline = time.Now().Add(stopWriteTime)
			}
			if time.Now().After(deadline) {
				return
			}
		default:
		}
		time.Sleep(rewriteEvery)
	}
}

// complete writes a batch of results in one transaction: the log, the queue, and the health of the endpoints.
func (d *Dispatcher) complete(ctx context.Context, batch []result) error {
	var claims []store.Claim
	var failing []domain.EndpointKey
	for _, r := range batch {
		claims = append(claims, r.claim)
		if r.response != nil && !r.response.OK() {
			failing = append(failing, r.claim.Key())
		}
	}
	return d.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		locked, err := store.LockClaims(ctx, tx, claims, failing)
		if err != nil {
			return err
		}
		valid := slices.DeleteFunc(slices.Clone(batch), func(r result) bool { return !locked.Valid[r.claim.DeliveryID] })
		if len(valid) < len(batch) {
			d.Log.Warn("claims expired before their results were recorded; the deliveries are repeated", slog.Int("deliveries", len(batch)-len(valid)))
		}
		endpoints, err := d.updateHealth(ctx, tx, locked, valid)
		if err != nil {
			return err
		}
		return store.Complete(tx, d.completions(valid, endpoints))
	})
}

// updateHealth writes the changes that the results make to their endpoints and queues, and returns the changed endpoints.
func (d *Dispatcher) updateHealth(ctx context.Context, tx pg.Tx, locked store.LockedClaims, results []result) (map[domain.EndpointKey]domain.Endpoint, error) {
	outcomes, queues := d.outcomes(locked, results)
	for key, before := range locked.Endpoints {
		after := before.After(outcomes[key]...)
		locked.Endpoints[key] = after
		if after.ConsecutiveFailures == before.ConsecutiveFailures && after.Status == before.Status {
			continue
		}
		store.WriteEndpointHealth(tx, key, after)
		if err := d.publish(ctx, tx, key, change{before, after, outcomes[key]}); err != nil {
			return nil, err
		}
	}
	for key, state := range queues {
		store.WriteQueueState(tx, key, state, d.Now())
	}
	return locked.Endpoints, nil
}

// outcomes returns the outcomes of the attempts of each endpoint, and the states of the queues that must be written.
func (d *Dispatcher) outcomes(locked store.LockedClaims, results []result) (map[domain.EndpointKey][]domain.Outcome, map[domain.EndpointKey]store.QueueState) {
	outcomes, queues := map[domain.EndpointKey][]domain.Outcome{}, map[domain.EndpointKey]store.QueueState{}
	for _, r := range results {
		key := r.claim.Key()
		before, changed := queues[key]
		if !changed {
			before = locked.Queues[key]
		}
		after := before
		if r.response != nil {
			outcomes[key] = append(outcomes[key], r.response.Outcome())
			after.Breaker = d.breaker(before.Breaker, r)
			after.SlowUntil = domain.SlowUntil(before.SlowUntil, d.Now(), r.response.Took)
		}
		if changed || r.failed() || locked.AtLimit[key] || !before.Closed() || before.SlowUntil != after.SlowUntil {
			queues[key] = after
		}
	}
	return outcomes, queues
}

// breaker returns the breaker of an endpoint after an attempt.
func (d *Dispatcher) breaker(b domain.Breaker, r result) domain.Breaker {
	switch {
	case !d.Breaker || r.unsigned:
		return b
	case r.response.OK():
		return domain.Breaker{}
	default:
		return b.Fail(d.Now(), r.claim.DeliveryID)
	}
}

// change is an endpoint before and after a batch of attempts.
type change struct {
	before, after domain.Endpoint
	outcomes      []domain.Outcome
}

// publish adds the events about a change of an endpoint's health to the outbox.
func (d *Dispatcher) publish(ctx context.Context, tx pg.Tx, key domain.EndpointKey, c change) error {
	ctx = WithCaller(ctx, domain.Event{Tenant: key.Tenant, Livemode: key.Livemode})
	version := c.before.Version + 1
	var failed error
	if c.before.Warns(c.outcomes...) {
		failed = errors.Join(failed, publishHealth(ctx, tx, "failing", c.after, version))
	}
	if c.after.Status != c.before.Status {
		failed = errors.Join(failed, publishHealth(ctx, tx, "disabled", c.after, version))
	}
	tx.AfterCommit(d.WakeRelay)
	return failed
}

// completions returns the new status of each delivery.
func (d *Dispatcher) completions(results []result, endpoints map[domain.EndpointKey]domain.Endpoint) []store.Completion {
	out := make([]store.Completion, 0, len(results))
	for _, r := range results {
		c := store.Completion{Claim: r.claim, Status: domain.Failed, Reason: new(domain.Expired)}
		if r.unsigned {
			c.Status, c.Reason, c.Next = domain.Pending, nil, new(d.Now().Add(unsignedPause))
		}
		if r.response != nil {
			n := r.claim.Attempts + 1
			c.Attempt = new(r.response.Attempt(n))
			endpoint, found := endpoints[r.claim.Key()]
			next, again := domain.Next(r.claim.DeliveryID.Time(), d.Now(), n, r.response.RetryAfter, d.Jitter())
			switch {
			case r.response.OK():
				c.Status, c.Reason = domain.Succeeded, nil
			case n >= domain.MaxAttempts:
				c.Reason = new(domain.AttemptsExhausted)
			case !found || endpoint.Status != domain.Enabled:
				c.Reason = new(domain.EndpointDisabled)
			case again:
				c.Status, c.Reason, c.Next = domain.Pending, nil, &next
			}
		}
		out = append(out, c)
	}
	return out
}
