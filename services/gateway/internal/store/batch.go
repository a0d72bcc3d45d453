package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/redisx"
)

const (
	maxBatch = 256
	// patience is how many time-outs a round trip may take when this process, not Redis, is slow.
	patience = 50
	// pause is between two attempts to reach a Redis that is away. No request waits for them.
	pause = 50 * time.Millisecond
)

type ask struct {
	question Question
	reply    Reply
	err      error
	done     chan struct{}
}

// Options are the limits of Open.
type Options struct {
	Timeout time.Duration   // for Redis to answer
	Queue   int             // requests, and answers to cache, that may wait
	Dropped func()          // an answer was not cached
	Changed func(away bool) // Redis went away, or came back
	Access  redisx.Access   // beside the address
}

// Open prepares for Redis at address, in any form of redisx; it does not connect.
func Open(address string, opt Options) (*Redis, error) {
	client, err := redisx.Open(address, redisx.Options{
		Timeout: patience * opt.Timeout, PoolSize: 4, Access: opt.Access, Dial: patient(opt.Timeout),
	})
	if err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	return &Redis{
		client:  client,
		script:  redis.NewScript(windowScript),
		asks:    make(chan *ask, opt.Queue),
		keeps:   make(chan keep, opt.Queue),
		dropped: opt.Dropped,
		changed: opt.Changed,
	}, nil
}

// Ask runs the script. Questions of concurrent requests share a pipeline. It returns ErrAway after one
// time-out when Redis does not answer, and at once until Redis is back.
func (r *Redis) Ask(q Question) (Reply, error) {
	if r.away.Load() {
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

// Run sends until ctx ends. Nobody may Ask after that.
func (r *Redis) Run(ctx context.Context) error {
	go r.keepAll(ctx)
	if err := r.reach(ctx); err != nil {
		r.lost(ctx)
	}
	batch := make([]*ask, 0, maxBatch)
	for {
		select {
		case first := <-r.asks:
			batch = r.gather(append(batch[:0], first))
			r.flush(ctx, batch)
		case <-ctx.Done():
			return nil
		}
	}
}

// gather adds the questions that came while the last batch was on its way.
func (r *Redis) gather(batch []*ask) []*ask {
	for len(batch) < maxBatch {
		select {
		case next := <-r.asks:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// flush asks all of batch in one round trip, in a Cluster in one to each node side by side.
func (r *Redis) flush(ctx context.Context, batch []*ask) {
	if r.away.Load() {
		for _, a := range batch {
			a.err = ErrAway
			close(a.done)
		}
		return
	}
	silent := r.evaluate(ctx, batch, r.script.EvalSha)
	// Redis has forgotten the script: whoever met that asks again, and loads it. The others were counted.
	if again := forgotten(batch); len(again) > 0 {
		silent = r.evaluate(ctx, again, r.script.Eval) || silent
	}
	if silent {
		r.lost(ctx)
	}
	for _, a := range batch {
		if a.err != nil {
			a.err = fmt.Errorf("%w: %w", ErrAway, a.err)
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

// evaluate fills in each reply or error, and reports whether Redis, or a node of it, has not answered.
func (r *Redis) evaluate(ctx context.Context, batch []*ask, eval evalFunc) (silent bool) {
	ctx = context.WithoutCancel(ctx)
	pipe := r.client.Pipeline()
	cmds := make([]*redis.Cmd, len(batch))
	for i, a := range batch {
		keys, args := a.question.args()
		cmds[i] = eval(ctx, pipe, keys, args...)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	for i, a := range batch {
		v, err := cmds[i].Result()
		silent = silent || unreachable(err)
		if err == nil {
			a.reply, err = parse(v)
		}
		a.err = err
	}
	return silent
}

// unreachable reports whether err means that Redis has not answered, rather than refused a command.
func unreachable(err error) bool {
	var refused redis.Error
	return err != nil && !errors.As(err, &refused)
}

// reach makes a round trip on the connection that batches use; in a Cluster one to each master, because questions go
// to all of them: without one they would be away and back in turns.
func (r *Redis) reach(ctx context.Context) error {
	if c, ok := r.client.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return reach(ctx, node) }) //nolint:wrapcheck // for the caller only
	}
	return reach(ctx, r.client)
}

func reach(ctx context.Context, node redis.UniversalClient) error {
	pipe := node.Pipeline()
	pipe.Ping(ctx)
	_, err := pipe.Exec(ctx)
	return err //nolint:wrapcheck // for the caller only
}

// lost stops all questions until a round trip succeeds again, which is tried aside.
func (r *Redis) lost(ctx context.Context) {
	if !r.away.CompareAndSwap(false, true) {
		return
	}
	r.since.Store(time.Now().UnixNano())
	r.changed(true)
	go func() {
		for {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			if r.reach(ctx) == nil {
				r.changed(false)
				r.since.Store(0)
				r.away.Store(false)
				return
			}
		}
	}()
}

// Away is how long Redis has not answered, 0 while it does.
func (r *Redis) Away() time.Duration {
	since := r.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(time.Unix(0, since))
}

// keepAll writes finished answers, those that have come together in one round trip. A lost one is no loss: its
// service has it.
func (r *Redis) keepAll(ctx context.Context) {
	batch := make([]keep, 0, maxBatch)
	for {
		select {
		case k := <-r.keeps:
			batch = append(batch[:0], k)
		case <-ctx.Done():
			return
		}
		for len(batch) < maxBatch && len(r.keeps) > 0 {
			batch = append(batch, <-r.keeps)
		}
		r.write(ctx, batch)
	}
}

func (r *Redis) write(ctx context.Context, batch []keep) {
	pipe := r.client.Pipeline()
	for _, k := range batch {
		if ttl := time.Until(k.until); ttl < time.Second || r.away.Load() {
			r.dropped()
		} else {
			pipe.Set(ctx, k.key, k.value, ttl)
		}
	}
	cmds, _ := pipe.Exec(ctx) // each command keeps its own error
	for _, c := range cmds {
		if c.Err() != nil {
			r.dropped()
		}
	}
}
