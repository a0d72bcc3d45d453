package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// Dispatcher.Run repeats passes. One pass claims due deliveries in one transaction and starts their attempts:
//
//  1. freeCapacity subtracts the attempts in flight from the process's limits: concurrency, and bytes of bodies.
//  2. store.ReadyQueues deletes the wakeups (table wakeups), locks the endpoint queues that have been ready longest
//     (endpoint_queues, SKIP LOCKED), and reads them with their endpoints and secrets (endpoints, endpoint_secrets, queue).
//  3. pauseQueue lets the queues of suspended tenants wait (tenant_states, endpoint_queues), and failQueued fails the queued
//     deliveries of disabled endpoints (queue, deliveries).
//  4. EndpointQueue.Allowance returns how many attempts the endpoint's own limits allow: max_in_flight, max_per_second
//     and the breaker. domain.FairShare divides the free concurrency among tenants and their queues.
//  5. store.DueDeliveries reads the due rows of each queue, and the sizes of their bodies (queue, events).
//  6. domain.SelectByBytes selects the deliveries whose bodies fit into the free bytes.
//  7. store.ClaimDue marks their rows as claimed and reads the bodies (queue, events), and store.Reschedule sets
//     when each queue is ready next (endpoint_queues). The transaction commits.
//  8. send starts a goroutine for each claim: attempt signs and posts the body, and returns the result.
//
// At the same time writeResults takes results, up to 500 at a time, and writes them in one transaction: store.LockClaims locks
// what they change (queue, endpoints, endpoint_queues), updateHealth writes failures, breakers and speeds (endpoints,
// endpoint_queues) and publishes events (outbox), and store.Complete writes the log and deletes or reschedules the rows
// (deliveries, queue). Then it wakes Run for the next pass.

// Sender posts to receivers.
type Sender interface {
	// Send makes one attempt within the time of ctx. A failure is also a result.
	Send(ctx context.Context, d domain.Outgoing) domain.Response
}

// Dispatcher delivers events. Several processes can each run one. A claim expires after claimTime, so that another process repeats
// the attempts of a killed process. An attempt that had already succeeded is then made twice.
type Dispatcher struct {
	Worker         *pg.DB // worker role
	Box            *crypt.Box
	Sender         Sender
	Log            *slog.Logger
	Metrics        *Metrics
	Breaker        bool // WEBHOOK_BREAKER
	MaxConcurrency int  // maximum number of attempts in flight
	MaxBytes       int  // maximum bytes of their bodies
	BatchBytes     int  // maximum bytes of the bodies that one transaction claims
	Now            func() time.Time
	Jitter         func() float64 // in [0, 1)
	WakeRelay      func()         // wakes the outbox's relay after a commit

	once         sync.Once
	wake         chan struct{}
	results      chan result
	writeFailing atomic.Bool // results cannot be written because the database is not available
	mu           sync.Mutex  // guards active
	active       map[*activeAttempt]bool
}

// activeAttempt is an attempt in flight.
type activeAttempt struct {
	key     domain.EndpointKey
	speed   domain.Speed
	bytes   int
	started time.Time
}

// The times and sizes of the dispatcher.
const (
	attemptTimeout = 10 * time.Second
	claimTime      = 30 * time.Second // well above attemptTimeout, so that no claim of a live process expires
	pollInterval   = 100 * time.Millisecond
	slowInterval   = time.Second // between passes of a slow queue for which there was no capacity
	// suspendedInterval is the time between passes of a suspended tenant's queue, which only find that it still waits.
	suspendedInterval = time.Minute

	errorPause     = time.Second // after a pass that failed
	queuesPerPass  = 256
	minTenantShare = 32 // minimum concurrency of a tenant's share
)

// prepare creates the channels and maps on first use.
func (d *Dispatcher) prepare() {
	d.once.Do(func() {
		d.wake, d.results, d.active = make(chan struct{}, 1), make(chan result, d.MaxConcurrency), map[*activeAttempt]bool{}
	})
}

// Wake makes the next pass start now. It never blocks.
func (d *Dispatcher) Wake() {
	d.prepare()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. It returns when all attempts in flight have completed and their results are written.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.prepare()
	written := make(chan struct{})
	stop := make(chan struct{})
	go func() { //nolint:contextcheck // results are written after ctx has ended, too
		defer close(written)
		d.writeResults(stop)
	}()
	var attempts sync.WaitGroup
	for ctx.Err() == nil {
		more, err := d.pass(ctx, &attempts)
		wait := pollInterval
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "due deliveries not claimed; trying again", slog.Duration("wait", errorPause), slog.Any("error", err))
			wait = errorPause
		}
		if !more || err != nil {
			d.waitForWake(ctx, wait)
		}
	}
	attempts.Wait()
	close(stop)
	<-written
	return nil
}

// waitForWake waits until Wake is called, ctx ends, or the time has passed.
func (d *Dispatcher) waitForWake(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-t.C:
	}
}

// pass claims due deliveries of the ready queues and starts their attempts. It reports whether an immediate next pass may find more
// deliveries. While results cannot be written, it does nothing.
func (d *Dispatcher) pass(ctx context.Context, attempts *sync.WaitGroup) (more bool, err error) {
	if d.writeFailing.Load() {
		return false, nil
	}
	now, started := d.Now(), time.Now()
	if free := d.freeCapacity(now); free.concurrency.Free() <= 0 || free.bytes.Free() <= 0 {
		return false, nil
	}
	var queues []store.ReadyQueue
	var claims []store.Claim
	err = d.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		queues, err = store.ReadyQueues(ctx, tx, now, queuesPerPass)
		if err != nil || len(queues) == 0 {
			return err
		}
		claims, err = d.claim(ctx, tx, queues, now)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(claims) > 0 {
		d.Metrics.claims.Observe(time.Since(started).Seconds())
	}
	d.send(ctx, queues, claims, now, attempts)
	return len(queues) == queuesPerPass || len(claims) > 0, nil
}

// send makes the attempt of each claim in a separate goroutine, which sends the result to d.results.
func (d *Dispatcher) send(ctx context.Context, queues []store.ReadyQueue, claims []store.Claim, now time.Time, attempts *sync.WaitGroup) {
	byKey := map[domain.EndpointKey]store.ReadyQueue{}
	for _, q := range queues {
		byKey[q.Key] = q
	}
	for _, c := range claims {
		queue := byKey[c.Key()]
		a := &activeAttempt{key: c.Key(), speed: queue.Speed, bytes: len(c.Body), started: now}
		d.mu.Lock()
		d.active[a] = true
		d.mu.Unlock()
		attempts.Go(func() {
			r := d.attempt(context.WithoutCancel(ctx), queue, c) // an attempt completes even if the process stops
			r.claim.Body = nil
			d.results <- r // before the attempt is removed from active, so that unwritten results are limited too
			d.mu.Lock()
			delete(d.active, a)
			d.mu.Unlock()
		})
	}
}
