package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/redisx"
)

const (
	maxBatch = 256
	// lateFactor is the maximum duration of a round trip, in time-outs, if this process is slow and not Redis.
	lateFactor = 50
	// carriedBytes is the number of bytes after which a batch of evaluations takes no more responses to cache along.
	carriedBytes = 64 << 10
	// responseDelay is how long responses wait for a batch of evaluations that takes them along, which saves a round trip.
	responseDelay = 10 * time.Millisecond
	// retryPause is the pause between two attempts to reach a Redis that is down. No request waits for these attempts.
	retryPause = 50 * time.Millisecond
)

// evaluation is a request that waits for its result.
type evaluation struct {
	request Request
	result  Result
	err     error
	done    chan struct{}
}

// Options are the options of Open.
type Options struct {
	Timeout time.Duration   // for Redis to respond
	Queue   int             // maximum number of waiting requests, and of responses to cache
	Dropped func()          // called when a response was not cached
	Changed func(down bool) // called when Redis goes down and when it is up again
	Access  redisx.Access   // in addition to the address
}

// Open prepares a client of Redis at address, in any form that redisx accepts. It does not connect.
func Open(address string, opt Options) (*Redis, error) {
	client, err := redisx.Open(address, redisx.Options{
		Timeout: lateFactor * opt.Timeout, PoolSize: 4, Access: opt.Access, Dial: dialLateRead(opt.Timeout),
	})
	if err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	return &Redis{
		client:      client,
		script:      redis.NewScript(windowScript),
		evaluations: make(chan *evaluation, opt.Queue),
		responses:   make(chan cachedResponse, opt.Queue),
		waiting:     make(chan struct{}, 1),
		dropped:     opt.Dropped,
		changed:     opt.Changed,
	}, nil
}

// Evaluate runs the script. Concurrent requests share a pipeline. If Redis does not respond, it returns ErrDown after one time-out,
// and then immediately until Redis is up again.
func (r *Redis) Evaluate(q Request) (Result, error) {
	if r.down.Load() {
		return Result{}, ErrDown
	}
	e := &evaluation{request: q, done: make(chan struct{})}
	select {
	case r.evaluations <- e:
	default:
		return Result{}, ErrDown
	}
	<-e.done
	return e.result, e.err
}

// Run sends batches until ctx ends. Evaluate must not be called after that.
func (r *Redis) Run(ctx context.Context) error {
	go r.writeResponses(ctx)
	if err := r.reach(ctx); err != nil {
		r.markDown(ctx)
	}
	batch := make([]*evaluation, 0, maxBatch)
	for {
		select {
		case first := <-r.evaluations:
			batch = r.gather(append(batch[:0], first))
			r.flush(ctx, batch)
		case <-ctx.Done():
			return nil
		}
	}
}

// gather adds the evaluations that arrived while the previous batch was sent.
func (r *Redis) gather(batch []*evaluation) []*evaluation {
	for len(batch) < maxBatch {
		select {
		case next := <-r.evaluations:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// flush runs batch in one round trip. In a Cluster, it makes one round trip to each node in parallel.
func (r *Redis) flush(ctx context.Context, batch []*evaluation) {
	if r.down.Load() {
		for _, e := range batch {
			e.err = ErrDown
			close(e.done)
		}
		return
	}
	silent := r.runScript(ctx, batch, r.script.EvalSha)
	// If Redis lost the script, the evaluations that failed for this reason run again and load it. The others were counted.
	if again := forgotten(batch); len(again) > 0 {
		silent = r.runScript(ctx, again, r.script.Eval) || silent
	}
	if silent {
		r.markDown(ctx)
	}
	for _, e := range batch {
		if e.err != nil {
			e.err = fmt.Errorf("%w: %w", ErrDown, e.err)
		}
		close(e.done)
	}
}

func forgotten(batch []*evaluation) []*evaluation {
	var again []*evaluation
	for _, e := range batch {
		if redis.HasErrorPrefix(e.err, "NOSCRIPT") {
			again = append(again, e)
		}
	}
	return again
}

type evalFunc func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

// runScript stores each result or error, and reports whether Redis, or one of its nodes, did not respond. The round trip also caches
// waiting responses.
func (r *Redis) runScript(ctx context.Context, batch []*evaluation, eval evalFunc) (silent bool) {
	ctx = context.WithoutCancel(ctx)
	pipe := r.client.Pipeline()
	sets := r.queueResponses(ctx, pipe, carriedBytes)
	cmds, states := make([]*redis.Cmd, len(batch)), make([]*redis.StringCmd, len(batch))
	for i, e := range batch {
		keys, args := e.request.args()
		cmds[i] = eval(ctx, pipe, keys, args...)
		if e.request.Tenant != "" {
			states[i] = pipe.Get(ctx, e.request.PreviousStateKey())
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, e := range batch {
		e.result, e.err = decode(cmds[i], states[i])
		silent = silent || unreachable(e.err)
	}
	r.countDropped(sets)
	return silent
}

// decode returns the result of one evaluation. previous is the state at its previous key, or nil.
func decode(script *redis.Cmd, previous *redis.StringCmd) (Result, error) {
	v, err := script.Result()
	if err != nil {
		return Result{}, err
	}
	r, err := parse(v)
	if err != nil || previous == nil {
		return r, err
	}
	state, err := previous.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Result{}, err
	}
	r.State = stronger(r.State, state)
	return r, nil
}

// unreachable reports whether err means that Redis did not respond. Otherwise Redis rejected a command.
func unreachable(err error) bool {
	var refused redis.Error
	return err != nil && !errors.As(err, &refused)
}

// reach makes a round trip on the connection that batches use. In a Cluster it makes one to each master, because evaluations use
// all of them. Otherwise Redis would alternate between down and up.
func (r *Redis) reach(ctx context.Context) error {
	if c, ok := r.client.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return reach(ctx, node) })
	}
	return reach(ctx, r.client)
}

func reach(ctx context.Context, node redis.UniversalClient) error {
	pipe := node.Pipeline()
	pipe.Ping(ctx)
	_, err := pipe.Exec(ctx)
	return err
}

// markDown stops all evaluations until a background probe completes a round trip.
func (r *Redis) markDown(ctx context.Context) {
	if !r.down.CompareAndSwap(false, true) {
		return
	}
	r.since.Store(time.Now().UnixNano())
	r.changed(true)
	go func() {
		for {
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
				return
			}
			if r.reach(ctx) == nil {
				r.changed(false)
				r.since.Store(0)
				r.down.Store(false)
				return
			}
		}
	}()
}

// DownFor returns how long Redis has been down, or 0 while it is up.
func (r *Redis) DownFor() time.Duration {
	since := r.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(time.Unix(0, since))
}

// writeResponses caches the responses that no batch of evaluations took along. Losing one does no harm, because its service stored it.
func (r *Redis) writeResponses(ctx context.Context) {
	for {
		select {
		case <-r.waiting:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(responseDelay):
		case <-ctx.Done():
			return
		}
		for len(r.responses) > 0 {
			pipe := r.client.Pipeline()
			sets := r.queueResponses(ctx, pipe, math.MaxInt)
			_, _ = pipe.Exec(ctx) // each command has its own error
			r.countDropped(sets)
		}
	}
}

// queueResponses adds waiting responses to a pipeline, at most maxBatch, until they have that many bytes.
func (r *Redis) queueResponses(ctx context.Context, pipe redis.Pipeliner, bytes int) (sets []*redis.StatusCmd) {
	for len(sets) < maxBatch && bytes > 0 {
		select {
		case k := <-r.responses:
			if ttl := time.Until(k.until); ttl < time.Second || r.down.Load() {
				r.dropped()
			} else {
				sets, bytes = append(sets, pipe.Set(ctx, k.key, k.value, ttl)), bytes-len(k.value)
			}
		default:
			return sets
		}
	}
	return sets
}

func (r *Redis) countDropped(sets []*redis.StatusCmd) {
	for _, set := range sets {
		if set.Err() != nil {
			r.dropped()
		}
	}
}
