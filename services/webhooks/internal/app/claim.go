package app

import (
	"context"
	"maps"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// capacity is the free capacity of the process for attempts.
type capacity struct {
	concurrency, bytes *domain.Budget
	late               map[domain.EndpointKey]bool // endpoints with an attempt in flight for domain.SlowAfter or longer
}

// freeCapacity subtracts the attempts in flight from the process's limits.
func (d *Dispatcher) freeCapacity(now time.Time) capacity {
	c := capacity{domain.NewBudget(d.MaxConcurrency, minTenantShare), domain.NewBudget(d.MaxBytes, 0), map[domain.EndpointKey]bool{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.active {
		speed := a.speed
		if now.Sub(a.started) >= domain.SlowAfter {
			speed, c.late[a.key] = domain.Slow, true
		}
		c.concurrency.Acquire(a.key.Tenant, speed, 1)
		c.bytes.Acquire(a.key.Tenant, speed, a.bytes)
	}
	return c
}

// claim divides the free capacity among the ready queues, claims their due deliveries, and schedules the next pass of each queue.
func (d *Dispatcher) claim(ctx context.Context, tx pg.Tx, ready []store.ReadyQueue, now time.Time) ([]store.Claim, error) {
	free := d.freeCapacity(now) // computed again, because a transaction can be retried
	queues, err := d.enabled(ctx, tx, ready, free.late, now)
	if err != nil {
		return nil, err
	}
	allowances := make([]domain.Allowance, len(queues))
	for i, q := range queues {
		allowances[i] = q.Allowance(now)
	}
	shares, refused := domain.FairShare(queues, allowances, free.concurrency)
	limits := make([]store.ClaimLimit, len(queues))
	for i, q := range queues {
		limits[i] = store.ClaimLimit{Key: q.Key, Max: shares[i], FirstAttempts: allowances[i].FirstAttempts}
	}
	due, err := store.DueDeliveries(ctx, tx, limits, now)
	if err != nil {
		return nil, err
	}
	candidates, dueCount := make([]domain.Candidate, len(due)), make([]int, len(queues))
	for i, delivery := range due {
		candidates[i] = domain.Candidate{Queue: delivery.Queue, Bytes: delivery.Bytes}
		dueCount[delivery.Queue]++
	}
	selected, tooLarge := domain.SelectByBytes(queues, candidates, free.bytes, d.BatchBytes)
	maps.Copy(refused, tooLarge)
	claimed, started := make([]store.Due, len(selected)), make([]int, len(queues))
	for i, at := range selected {
		claimed[i] = due[at]
		started[due[at].Queue]++
	}
	var schedules []store.Schedule
	for i, q := range queues {
		if started[i] == 0 && allowances[i].Max > 0 && !refused[q.Key] && (shares[i] == 0 || dueCount[i] > 0) {
			continue // no concurrency is left, or the batch is full: the queue stays ready and retains its position
		}
		schedules = append(schedules, schedule(q, allowances[i], now, started[i], refused[q.Key]))
	}
	store.Reschedule(tx, schedules)
	return store.ClaimDue(ctx, tx, claimed, now.Add(claimTime))
}

// enabled returns the queues of enabled endpoints of active tenants, with the breaker and the speed that this process applies. It fails the queued
// deliveries of disabled endpoints. Those of suspended tenants wait, and their attempts are not counted.
func (d *Dispatcher) enabled(ctx context.Context, tx pg.Tx, ready []store.ReadyQueue, late map[domain.EndpointKey]bool, now time.Time) ([]domain.EndpointQueue, error) {
	var queues []domain.EndpointQueue
	for i := range ready {
		if !d.Breaker {
			ready[i].Breaker = domain.Breaker{}
		}
		if late[ready[i].Key] {
			ready[i].Speed = domain.Slow
		}
		switch q := ready[i]; {
		case q.Suspended:
			pauseQueue(tx, q.EndpointQueue, now)
		case q.Enabled:
			queues = append(queues, q.EndpointQueue)
		default:
			if err := d.failQueued(ctx, tx, q.Key, now); err != nil {
				return nil, err
			}
		}
	}
	return queues, nil
}

// pauseQueue lets the queue of a suspended tenant wait. store.Queue.TenantChanged makes it ready as soon as the
// tenant is active again.
func pauseQueue(tx pg.Tx, q domain.EndpointQueue, now time.Time) {
	store.Reschedule(tx, []store.Schedule{{
		Key: q.Key, RateWindow: q.RateWindow, NotBefore: now.Add(suspendedInterval), DeferredUntil: q.Breaker.DeferredUntil,
	}})
}

// failQueued fails the queued deliveries of a disabled endpoint, one batch per pass.
func (d *Dispatcher) failQueued(ctx context.Context, tx pg.Tx, key domain.EndpointKey, now time.Time) error {
	if _, err := store.FailQueued(ctx, tx, key, now, failBatch); err != nil {
		return err
	}
	store.Reschedule(tx, []store.Schedule{{Key: key, NotBefore: now}})
	return nil
}

// schedule returns the state of a queue after a pass that started some attempts. If a limit of its tenant or speed allowed no more
// attempts, the queue waits, so that the next pass processes other queues.
func schedule(q domain.EndpointQueue, a domain.Allowance, now time.Time, started int, refused bool) store.Schedule {
	s := store.Schedule{Key: q.Key, DeferredUntil: q.Breaker.DeferredUntil}
	s.RateWindow, s.NotBefore, s.AtLimit = q.AfterStart(a, now, started)
	if refused && s.NotBefore.Equal(now) {
		s.NotBefore = now.Add(pollInterval)
		if q.Speed != domain.Fast {
			s.NotBefore = now.Add(slowInterval)
		}
	}
	return s
}
