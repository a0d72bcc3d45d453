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

// ending is a claim with what its attempt came to. Without an answer nothing was sent: there is nothing any more, or
// it could not be signed, which is no fault of the receiver's and is tried again.
type ending struct {
	claim    store.Claim
	answer   *domain.Answer
	unsigned bool
}

// unsignedPause is how long a delivery waits that could not be signed.
const unsignedPause = time.Minute

// attempt sends one delivery, signed now with every secret that is in force.
func (d *Dispatcher) attempt(ctx context.Context, lane store.ReadyLane, c store.Claim) ending {
	if c.Body == nil {
		return ending{claim: c}
	}
	now := d.Now()
	secrets, err := store.Secrets(d.Box, c.Key(), lane.SecretIDs, lane.Sealed)
	if err != nil {
		d.Log.Error("secrets cannot be opened", slog.String("endpoint", c.EndpointID.String()), slog.Any("error", err))
		d.Metrics.unsigned.Inc()
		return ending{claim: c, unsigned: true}
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	d.Metrics.first(c, now)
	a := d.Sender.Send(ctx, domain.Outgoing{
		URL: lane.URL, Live: c.Livemode, Body: c.Body,
		Headers: domain.Headers(c.EventID.String(), c.EventType, c.DeliveryID.String(), c.Attempts+1, c.Body, now, secrets...),
	})
	a.At = now
	d.Metrics.count(a)
	return ending{claim: c, answer: &a}
}

const (
	endingsAtOnce = 500
	rewriteEvery  = 200 * time.Millisecond
	lastWrites    = 4 * time.Second
)

// write writes endings, all that have come together in one transaction, until stop is closed and none is left.
// While they cannot be written nothing new is claimed: what has been delivered must be known first.
func (d *Dispatcher) write(stop <-chan struct{}) {
	for {
		select {
		case first := <-d.ended:
			d.writeBatch(d.gather(first), stop)
		case <-stop:
			for len(d.ended) > 0 {
				d.writeBatch(d.gather(<-d.ended), stop)
			}
			return
		}
	}
}

func (d *Dispatcher) gather(first ending) []ending {
	batch := []ending{first}
	for len(batch) < endingsAtOnce {
		select {
		case e := <-d.ended:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// writeBatch tries until it is written. A process that stops gives up after a while; its claims then end by time.
func (d *Dispatcher) writeBatch(batch []ending, stop <-chan struct{}) {
	var deadline time.Time
	for {
		ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
		err := d.settle(ctx, batch)
		cancel()
		if err == nil {
			if len(d.ended) == 0 { // else the next batch has waited too, and its claims may have run out
				d.stuck.Store(false)
			}
			d.Ring()
			return
		}
		d.stuck.Store(true)
		d.Log.Warn("what was delivered cannot be written yet", slog.Int("deliveries", len(batch)), slog.Any("error", err))
		select {
		case <-stop:
			if deadline.IsZero() {
				deadline = time.Now().Add(lastWrites)
			}
			if time.Now().After(deadline) {
				return
			}
		default:
		}
		time.Sleep(rewriteEvery)
	}
}

// settle writes a batch of endings: the log, the queue, and the health of the endpoints.
func (d *Dispatcher) settle(ctx context.Context, batch []ending) error {
	var claims []store.Claim
	var failing []domain.LaneKey
	for _, e := range batch {
		claims = append(claims, e.claim)
		if e.answer != nil && !e.answer.OK() {
			failing = append(failing, e.claim.Key())
		}
	}
	return d.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		held, err := store.Hold(ctx, tx, claims, failing)
		if err != nil {
			return err
		}
		mine := slices.DeleteFunc(slices.Clone(batch), func(e ending) bool { return !held.Mine[e.claim.DeliveryID] })
		if len(mine) < len(batch) {
			d.Log.Warn("claims had run out before their end was written", slog.Int("deliveries", len(batch)-len(mine)))
		}
		after, err := d.judge(ctx, tx, held, mine)
		if err != nil {
			return err
		}
		return store.End(tx, d.verdicts(mine, after))
	})
}

// judge writes what the endings mean for their endpoints and breakers, and returns the endpoints as they are then.
func (d *Dispatcher) judge(ctx context.Context, tx pg.Tx, held store.Held, mine []ending) (map[domain.LaneKey]domain.Endpoint, error) {
	outcomes := map[domain.LaneKey][]domain.Outcome{}
	lanes := map[domain.LaneKey]store.LaneHealth{} // those that have to be written
	for _, e := range mine {
		key := e.claim.Key()
		before, known := lanes[key]
		if !known {
			before = held.Lanes[key]
		}
		after := before
		if e.answer != nil {
			outcomes[key] = append(outcomes[key], e.answer.Outcome())
			after.Breaker = d.breaker(before.Breaker, e)
			after.SlowUntil = domain.SlowUntil(before.SlowUntil, d.Now(), e.answer.Took)
		}
		failed := e.answer == nil || !e.answer.OK()
		if known || failed || held.Crowded[key] || !before.Closed() || before.SlowUntil != after.SlowUntil {
			lanes[key] = after
		}
	}
	for key, before := range held.Endpoints {
		after := before.After(outcomes[key]...)
		held.Endpoints[key] = after
		if after.ConsecutiveFailures == before.ConsecutiveFailures && after.Status == before.Status {
			continue
		}
		store.WriteHealth(tx, key, after)
		if err := d.tell(ctx, tx, key, change{before, after, outcomes[key]}); err != nil {
			return nil, err
		}
	}
	for key, l := range lanes {
		store.WriteLane(tx, key, l, d.Now())
	}
	return held.Endpoints, nil
}

func (d *Dispatcher) breaker(b domain.Breaker, e ending) domain.Breaker {
	switch {
	case !d.Breaker || e.unsigned:
		return b
	case e.answer.OK():
		return domain.Breaker{}
	default:
		return b.Fail(d.Now(), e.claim.DeliveryID)
	}
}

// change is what a batch of attempts has made of an endpoint.
type change struct {
	before, after domain.Endpoint
	outcomes      []domain.Outcome
}

// tell publishes what the operator must hear of.
func (d *Dispatcher) tell(ctx context.Context, tx pg.Tx, key domain.LaneKey, c change) error {
	own := As(ctx, domain.Event{Tenant: key.Tenant, Livemode: key.Livemode})
	version := c.before.Version + 1
	var failed error
	if c.before.Warns(c.outcomes...) {
		failed = errors.Join(failed, health(own, tx, "failing", c.after, version))
	}
	if c.after.Status != c.before.Status {
		failed = errors.Join(failed, health(own, tx, "disabled", c.after, version))
	}
	tx.AfterCommit(d.Wake)
	return failed
}

// verdicts says what becomes of each delivery.
func (d *Dispatcher) verdicts(mine []ending, endpoints map[domain.LaneKey]domain.Endpoint) []store.Ended {
	out := make([]store.Ended, 0, len(mine))
	for _, e := range mine {
		ended := store.Ended{Claim: e.claim, Status: domain.Failed, Reason: new(domain.Expired)}
		if e.unsigned {
			ended.Status, ended.Reason, ended.Next = domain.Pending, nil, new(d.Now().Add(unsignedPause))
		}
		if e.answer != nil {
			n := e.claim.Attempts + 1
			ended.Attempt = new(e.answer.Attempt(n))
			endpoint, known := endpoints[e.claim.Key()]
			next, again := domain.Next(e.claim.DeliveryID.Time(), d.Now(), n, e.answer.RetryAfter, d.Jitter())
			switch {
			case e.answer.OK():
				ended.Status, ended.Reason = domain.Succeeded, nil
			case n >= domain.MaxAttempts:
				ended.Reason = new(domain.AttemptsExhausted)
			case !known || endpoint.Status != domain.Enabled:
				ended.Reason = new(domain.EndpointDisabled)
			case again:
				ended.Status, ended.Reason, ended.Next = domain.Pending, nil, &next
			}
		}
		out = append(out, ended)
	}
	return out
}
