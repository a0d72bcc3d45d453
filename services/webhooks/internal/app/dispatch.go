package app

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/libs/crypt"
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
	Bytes   int  // of their bodies
	Batch   int  // bytes of the bodies that one transaction claims
	Now     func() time.Time
	Jitter  func() float64 // in [0, 1)
	Wake    func()         // wakes the outbox's relay after a commit

	once  sync.Once
	wake  chan struct{}
	ended chan ending
	stuck atomic.Bool // what ended cannot be written: the database is away
	mu    sync.Mutex  // guards onWay
	onWay map[*flight]bool
}

// flight is an attempt that is on its way.
type flight struct {
	lane  domain.LaneKey
	speed domain.Speed
	bytes int
	began time.Time
}

// The times of a delivery's way.
const (
	attemptTimeout = 10 * time.Second
	lease          = 30 * time.Second // well over attemptTimeout: no live process loses a claim
	pollEvery      = 100 * time.Millisecond
	slowRest       = time.Second // between two looks at a slow endpoint for which there was no room
	dispatchPause  = time.Second // after an error
	lanesAtOnce    = 256
	leastPlaces    = 32 // a tenant's share of the places, however few there are
)

func (d *Dispatcher) prepare() {
	d.once.Do(func() {
		d.wake, d.ended, d.onWay = make(chan struct{}, 1), make(chan ending, d.Places), map[*flight]bool{}
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
	now, began := d.Now(), time.Now()
	if r := d.room(now); r.places.Free() <= 0 || r.bytes.Free() <= 0 {
		return false, nil
	}
	var lanes []store.ReadyLane
	var claims []store.Claim
	err = d.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		lanes, err = store.ReadyLanes(ctx, tx, now, lanesAtOnce)
		if err != nil || len(lanes) == 0 {
			return err
		}
		claims, err = d.claim(ctx, tx, lanes, now)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(claims) > 0 {
		d.Metrics.claims.Observe(time.Since(began).Seconds())
	}
	d.send(ctx, lanes, claims, now, under)
	return len(lanes) == lanesAtOnce || len(claims) > 0, nil
}

// room is what a process has to give, and the lanes that have had an attempt on its way for long.
type room struct {
	places, bytes *domain.Budget
	late          map[domain.LaneKey]bool
}

func (d *Dispatcher) room(now time.Time) room {
	r := room{domain.NewBudget(d.Places, leastPlaces), domain.NewBudget(d.Bytes, 0), map[domain.LaneKey]bool{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := range d.onWay {
		speed := f.speed
		if now.Sub(f.began) >= domain.SlowAfter {
			speed, r.late[f.lane] = domain.Slow, true
		}
		r.places.Hold(f.lane.Tenant, speed, 1)
		r.bytes.Hold(f.lane.Tenant, speed, f.bytes)
	}
	return r
}

// claim shares what is free out to lanes, claims what is due for them, and says when each is ready again.
func (d *Dispatcher) claim(ctx context.Context, tx pg.Tx, ready []store.ReadyLane, now time.Time) ([]store.Claim, error) {
	r := d.room(now) // afresh: a transaction may be tried twice
	var lanes []domain.Lane
	for i := range ready {
		if !d.Breaker {
			ready[i].Breaker = domain.Breaker{}
		}
		if r.late[ready[i].Key] {
			ready[i].Speed = domain.Slow
		}
		if l := ready[i]; l.Enabled {
			lanes = append(lanes, l.Lane)
		} else if err := d.drop(ctx, tx, l.Key, now); err != nil {
			return nil, err
		}
	}
	turns := make([]domain.Turn, len(lanes))
	for i, l := range lanes {
		turns[i] = l.Turn(now)
	}
	n, refused := domain.Share(lanes, turns, r.places)
	var shares []store.Share
	for i, l := range lanes {
		shares = append(shares, store.Share{Key: l.Key, N: n[i], Firsts: turns[i].Firsts})
	}
	due, err := store.DueDeliveries(ctx, tx, shares, now)
	if err != nil {
		return nil, err
	}
	loads, waiting := make([]domain.Load, len(due)), make([]int, len(lanes))
	for i, q := range due {
		loads[i] = domain.Load{Lane: q.Lane, Bytes: q.Bytes}
		waiting[q.Lane]++
	}
	picked, heavy := domain.Fit(lanes, loads, r.bytes, d.Batch)
	maps.Copy(refused, heavy)
	chosen, begun := make([]store.Due, len(picked)), make([]int, len(lanes))
	for i, at := range picked {
		chosen[i] = due[at]
		begun[due[at].Lane]++
	}
	var served []store.Served
	for i, l := range lanes {
		if begun[i] == 0 && turns[i].N > 0 && !refused[l.Key] && (n[i] == 0 || waiting[i] > 0) {
			continue // all places are given away, or the batch is full: it keeps its place in the line
		}
		served = append(served, serve(l, turns[i], now, begun[i], refused[l.Key]))
	}
	store.EndTurns(tx, served)
	return store.ClaimDue(ctx, tx, chosen, now.Add(lease))
}

// serve is a lane after its turn. One that was refused more rests, so that others are seen meanwhile.
func serve(l domain.Lane, t domain.Turn, now time.Time, begun int, refused bool) store.Served {
	s := store.Served{Key: l.Key, DeferredUntil: l.Breaker.DeferredUntil}
	s.Pace, s.NotBefore, s.Crowded = l.After(t, now, begun)
	if refused && s.NotBefore.Equal(now) {
		s.NotBefore = now.Add(pollEvery)
		if l.Speed != domain.Fast {
			s.NotBefore = now.Add(slowRest)
		}
	}
	return s
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
func (d *Dispatcher) send(ctx context.Context, lanes []store.ReadyLane, claims []store.Claim, now time.Time, under *sync.WaitGroup) {
	at := map[domain.LaneKey]store.ReadyLane{}
	for _, l := range lanes {
		at[l.Key] = l
	}
	for _, c := range claims {
		lane := at[c.Key()]
		f := &flight{lane: c.Key(), speed: lane.Speed, bytes: len(c.Body), began: now}
		d.mu.Lock()
		d.onWay[f] = true
		d.mu.Unlock()
		under.Go(func() {
			end := d.attempt(context.WithoutCancel(ctx), lane, c) // a stop lets it come to its end
			end.claim.Body = nil
			d.ended <- end // before its place is free: what waits to be written is bounded, too
			d.mu.Lock()
			delete(d.onWay, f)
			d.mu.Unlock()
		})
	}
}
