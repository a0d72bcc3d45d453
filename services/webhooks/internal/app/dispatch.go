package app

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// Sender posts to receivers.
type Sender interface {
	// Send makes one attempt; ctx bounds the time. Whatever comes of it is an answer.
	Send(ctx context.Context, d domain.Outgoing) domain.Answer
}

// Dispatcher delivers: it claims what is due, fairly between tenants and endpoints, posts it, and writes what came
// of it. Any number of processes may run one. A claim ends by itself after lease, so what a killed process had on
// its way is attempted again, and an attempt that had succeeded just before is the one that is made twice.
type Dispatcher struct {
	Worker  *pg.DB // worker role
	Box     *crypt.Box
	Sender  Sender
	Log     *slog.Logger
	Metrics *Metrics
	Breaker bool // WEBHOOK_BREAKER
	Places  int  // attempts on their way at a time
	Now     func() time.Time
	Jitter  func() float64 // in [0, 1)
	Wake    func()         // wakes the outbox's relay after a commit

	once  sync.Once
	wake  chan struct{}
	ended chan ending
	stuck atomic.Bool // what ended cannot be written: the database is away
	mu    sync.Mutex  // guards the two below
	taken int
	held  map[ids.Tenant]int
}

// The times of a delivery's way.
const (
	attemptTimeout = 10 * time.Second
	lease          = 30 * time.Second // well over attemptTimeout: no live process loses a claim
	pollEvery      = 100 * time.Millisecond
	dispatchPause  = time.Second // after an error
	lanesAtOnce    = 256
	quotaShare     = 8 // one tenant has at most 1/8 of the places, and never fewer than quotaLeast
	quotaLeast     = 32
)

func (d *Dispatcher) prepare() {
	d.once.Do(func() {
		d.wake, d.ended, d.held = make(chan struct{}, 1), make(chan ending, d.Places), map[ids.Tenant]int{}
	})
}

// Ring asks for a look at the queue now. It never blocks.
func (d *Dispatcher) Ring() {
	d.prepare()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends, and returns when what is on its way has come to its end.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.prepare()
	writer := make(chan struct{})
	stop := make(chan struct{})
	go func() { //nolint:contextcheck // what was delivered is written after ctx has ended, too
		defer close(writer)
		d.write(stop)
	}()
	var under sync.WaitGroup
	for ctx.Err() == nil {
		more, err := d.turn(ctx, &under)
		wait := pollEvery
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "deliveries wait", slog.Any("error", err))
			wait = dispatchPause
		}
		if !more || err != nil {
			d.rest(ctx, wait)
		}
	}
	under.Wait()
	close(stop)
	<-writer
	return nil
}

func (d *Dispatcher) rest(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-t.C:
	}
}

// turn gives each ready lane its turn, and reports whether there may be more to do at once.
func (d *Dispatcher) turn(ctx context.Context, under *sync.WaitGroup) (more bool, err error) {
	if d.stuck.Load() {
		return false, nil
	}
	free, held := d.room()
	if free == 0 {
		return false, nil
	}
	now, began := d.Now(), time.Now()
	var lanes []store.ReadyLane
	var claims []store.Claim
	err = d.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		lanes, err = store.ReadyLanes(ctx, tx, now, lanesAtOnce)
		if err != nil || len(lanes) == 0 {
			return err
		}
		claims, err = d.claim(ctx, tx, lanes, now, free, held)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(claims) > 0 {
		d.Metrics.claims.Observe(time.Since(began).Seconds())
	}
	d.send(ctx, lanes, claims, under)
	return len(lanes) == lanesAtOnce || len(claims) > 0, nil
}

// room is how many more attempts may be begun, and how many each tenant has on their way.
func (d *Dispatcher) room() (free int, held map[ids.Tenant]int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held = make(map[ids.Tenant]int, len(d.held))
	for t, n := range d.held {
		held[t] = n
	}
	return d.Places - d.taken, held
}

// claim shares the free places out to lanes, claims what is due for them, and says when each is ready again.
func (d *Dispatcher) claim(ctx context.Context, tx pg.Tx, ready []store.ReadyLane, now time.Time, free int, held map[ids.Tenant]int) ([]store.Claim, error) {
	var lanes []domain.Lane
	for _, l := range ready {
		if !d.Breaker {
			l.Breaker = domain.Breaker{}
		}
		if l.Enabled {
			lanes = append(lanes, l.Lane)
		} else if err := d.drop(ctx, tx, l.Key, now); err != nil {
			return nil, err
		}
	}
	held = maps.Clone(held) // a transaction may be tried twice
	turns := make([]domain.Turn, len(lanes))
	for i, l := range lanes {
		turns[i] = l.Turn(now)
	}
	quota := max(d.Places/quotaShare, quotaLeast)
	n := domain.Share(lanes, turns, free, quota, held)
	var shares []store.Share
	for i, l := range lanes {
		if n[i] > 0 {
			shares = append(shares, store.Share{Key: l.Key, N: n[i], Firsts: turns[i].Firsts})
		}
	}
	claims, err := store.ClaimDue(ctx, tx, shares, now, now.Add(lease))
	if err != nil {
		return nil, err
	}
	begun := map[domain.LaneKey]int{}
	for _, c := range claims {
		begun[c.Key()]++
		held[c.TenantID]++
	}
	var served []store.Served
	for i, l := range lanes {
		full := held[l.Key.Tenant] >= quota
		if n[i] == 0 && turns[i].N > 0 && !full {
			continue // no place is left: it keeps its own in the line
		}
		s := store.Served{Key: l.Key, DeferredUntil: l.Breaker.DeferredUntil}
		s.Pace, s.NotBefore, s.Crowded = l.After(turns[i], now, begun[l.Key])
		if full && s.NotBefore.Equal(now) {
			s.NotBefore = now.Add(pollEvery) // others are to be seen meanwhile
		}
		served = append(served, s)
	}
	store.EndTurns(tx, served)
	return claims, nil
}

// drop fails what is queued for a disabled endpoint, a batch at each of its turns.
func (d *Dispatcher) drop(ctx context.Context, tx pg.Tx, key domain.LaneKey, now time.Time) error {
	if _, err := store.Drop(ctx, tx, key, now, atOnce); err != nil {
		return err
	}
	store.EndTurns(tx, []store.Served{{Key: key, NotBefore: now}})
	return nil
}

// send posts each claim in a goroutine of its own; what ended comes to d.ended.
func (d *Dispatcher) send(ctx context.Context, lanes []store.ReadyLane, claims []store.Claim, under *sync.WaitGroup) {
	at := map[domain.LaneKey]store.ReadyLane{}
	for _, l := range lanes {
		at[l.Key] = l
	}
	d.mu.Lock()
	for _, c := range claims {
		d.taken++
		d.held[c.TenantID]++
	}
	d.mu.Unlock()
	for _, c := range claims {
		lane := at[c.Key()]
		under.Go(func() {
			end := d.attempt(context.WithoutCancel(ctx), lane, c) // a stop lets it come to its end
			d.mu.Lock()
			d.taken--
			if d.held[c.TenantID]--; d.held[c.TenantID] == 0 {
				delete(d.held, c.TenantID)
			}
			d.mu.Unlock()
			d.ended <- end
		})
	}
}
