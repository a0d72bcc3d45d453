package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/redisx"
)

const (
	maxBatch = 256
	senders  = 2 // one reads answers while the other gathers questions
	// rest is how long nobody asks a Redis that failed to answer. A first request after it pays the deadline.
	rest = 200 * time.Millisecond
)

type ask struct {
	question Question
	reply    Reply
	err      error
	done     chan struct{}
}

type breaker = circuitbreaker.CircuitBreaker[any]

// Options are the limits of Open.
type Options struct {
	Timeout time.Duration // of one round trip
	Queue   int           // requests, and answers to cache, that may wait
	Dropped func()        // an answer was not cached because the queue was full
	Changed func(open bool)
}

// Open prepares for Redis at address; it does not connect.
func Open(address string, opt Options) (*Redis, error) {
	client, err := redisx.Open(address, redisx.Options{Timeout: opt.Timeout, PoolSize: 2 * (senders + 1)})
	if err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	client.AddHook(ownDeadlines{opt.Timeout})
	return &Redis{
		client:  client,
		script:  redis.NewScript(windowScript),
		asks:    make(chan *ask, opt.Queue),
		keeps:   make(chan keep, opt.Queue),
		dropped: opt.Dropped,
		breaker: circuitbreaker.NewBuilder[any]().WithFailureThreshold(1).WithSuccessThreshold(1).WithDelay(rest).
			OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
				switch { // between an outage's beginning and end it tries now and then, which is no news
				case e.OldState == circuitbreaker.ClosedState:
					opt.Changed(true)
				case e.NewState == circuitbreaker.ClosedState:
					opt.Changed(false)
				}
			}).
			Build(),
	}, nil
}

// Ask runs the script. Questions of concurrent requests share a pipeline. It returns ErrAway within about
// one time-out when Redis does not answer, and at once for a moment after that.
func (r *Redis) Ask(q Question) (Reply, error) {
	if r.breaker.IsOpen() && r.breaker.RemainingDelay() > 0 {
		return Reply{}, ErrAway
	}
	a := &ask{question: q, done: make(chan struct{})}
	select {
	case r.asks <- a:
	default:
		return Reply{}, ErrAway
	}
	<-a.done
	return a.reply, a.err
}

// Run sends until ctx ends.
func (r *Redis) Run(ctx context.Context) error {
	for range senders - 1 {
		go r.send(ctx)
	}
	go r.keepAll(ctx)
	r.send(ctx)
	return nil
}

func (r *Redis) send(ctx context.Context) {
	batch := make([]*ask, 0, maxBatch)
	for {
		select {
		case first := <-r.asks:
			batch = append(batch[:0], first)
		case <-ctx.Done():
			r.refuseRest()
			return
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case next := <-r.asks:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		r.flush(ctx, batch)
	}
}

// refuseRest lets nobody wait for a sender that has ended.
func (r *Redis) refuseRest() {
	for {
		select {
		case a := <-r.asks:
			a.fail(ErrAway)
		default:
			return
		}
	}
}

func (a *ask) fail(err error) {
	a.err = err
	close(a.done)
}

// flush asks all of batch in one round trip. The time-out is the client's own, of redisx.
func (r *Redis) flush(ctx context.Context, batch []*ask) {
	if !r.breaker.TryAcquirePermit() {
		for _, a := range batch {
			a.fail(ErrAway)
		}
		return
	}
	ctx = context.WithoutCancel(ctx)
	err := r.evaluate(ctx, batch, r.script.EvalSha)
	// Redis has forgotten the script: whoever met that asks again, and loads it. The others were counted.
	if again := forgotten(batch); len(again) > 0 {
		err = r.evaluate(ctx, again, r.script.Eval)
	}
	if away(err) {
		r.breaker.RecordFailure()
	} else {
		r.breaker.RecordSuccess()
	}
	for _, a := range batch {
		if a.err != nil {
			println(a.err.Error()); a.err = fmt.Errorf("%w: %w", ErrAway, a.err)
		}
		close(a.done)
	}
}

func forgotten(batch []*ask) []*ask {
	var again []*ask
	for _, a := range batch {
		if redis.HasErrorPrefix(a.err, "NOSCRIPT") {
			again = append(again, a)
		}
	}
	return again
}

type evalFunc func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

// evaluate fills in each reply or error, and returns the first error.
func (r *Redis) evaluate(ctx context.Context, batch []*ask, eval evalFunc) error {
	pipe := r.client.Pipeline()
	cmds := make([]*redis.Cmd, len(batch))
	for i, a := range batch {
		keys, args := a.question.args()
		cmds[i] = eval(ctx, pipe, keys, args...)
	}
	_, first := pipe.Exec(ctx)
	for i, a := range batch {
		v, err := cmds[i].Result()
		if err == nil {
			a.reply, err = parse(v)
		}
		a.err = err
	}
	return first //nolint:wrapcheck // each command keeps its own
}

// away reports whether err means that Redis cannot be reached, rather than that it refused a command.
func away(err error) bool {
	var refused redis.Error
	var network net.Error
	if err == nil || errors.As(err, &refused) && !errors.As(err, &network) {
		return false
	}
	return true
}

// keepAll writes finished answers. A lost one is no loss: its service has it.
func (r *Redis) keepAll(ctx context.Context) {
	for {
		select {
		case k := <-r.keeps:
			ttl := time.Until(k.until)
			if ttl < time.Second || r.breaker.IsOpen() {
				continue
			}
			if err := r.client.Set(context.WithoutCancel(ctx), k.key, k.value, ttl).Err(); err != nil {
				r.dropped()
			}
		case <-ctx.Done():
			return
		}
	}
}
