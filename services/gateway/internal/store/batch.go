package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/secret"
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
	Queue   int             // maximum number of waiting requests, and of responses to cache, for each node
	Dropped func()          // called when a response was not cached
	Changed func(down bool) // called when the first node goes down, and when all are up again
	Access  redisx.Access   // in addition to the address
	Login   secret.Setting  // the address; if its file changes, new connections use its user and password
}

// Open prepares a client of Redis at address, in any form that redisx accepts. It does not connect.
func Open(address string, opt Options) (*Redis, error) {
	client, err := redisx.Open(address, redisx.Options{
		Timeout: lateFactor * opt.Timeout, PoolSize: 4, Access: opt.Access, Login: opt.Login, Dial: dialLateRead(opt.Timeout),
	})
	if err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	return newRedis(client, opt), nil
}

// gather adds the evaluations that arrived while the previous batch was sent.
func (n *node) gather(batch []*evaluation) []*evaluation {
	for len(batch) < maxBatch {
		select {
		case next := <-n.evaluations:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// flush runs batch in one round trip.
func (n *node) flush(ctx context.Context, batch []*evaluation) {
	if n.down.Load() {
		for _, e := range batch {
			e.err = ErrDown
			close(e.done)
		}
		return
	}
	silent := n.runScript(ctx, batch, n.redis.script.EvalSha)
	// If Redis lost the script, the evaluations that failed for this reason run again and load it. The others were counted.
	if again := forgotten(batch); len(again) > 0 {
		silent = n.runScript(ctx, again, n.redis.script.Eval) || silent
	}
	if silent {
		n.markDown(ctx)
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

// runScript stores each result or error, and reports whether the node did not respond. The round trip also caches waiting responses.
func (n *node) runScript(ctx context.Context, batch []*evaluation, eval evalFunc) (silent bool) {
	ctx = context.WithoutCancel(ctx)
	pipe := n.redis.client.Pipeline()
	sets := n.queueResponses(ctx, pipe, carriedBytes)
	cmds := make([]*redis.Cmd, len(batch))
	for i, e := range batch {
		keys, args := e.request.args()
		cmds[i] = eval(ctx, pipe, keys, args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, e := range batch {
		e.result, e.err = decode(cmds[i])
		silent = silent || unreachable(e.err)
	}
	n.redis.countDropped(sets)
	return silent
}

// decode returns the result of one evaluation.
func decode(script *redis.Cmd) (Result, error) {
	v, err := script.Result()
	if err != nil {
		return Result{}, err
	}
	return parse(v)
}

// unreachable reports whether err means that Redis did not respond. Otherwise Redis rejected a command.
func unreachable(err error) bool {
	var refused redis.Error
	return err != nil && !errors.As(err, &refused)
}

// writeResponses caches the responses that no batch of evaluations took along. Losing one does no harm, because its service stored it.
func (n *node) writeResponses(ctx context.Context) {
	for {
		select {
		case <-n.waiting:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(responseDelay):
		case <-ctx.Done():
			return
		}
		for len(n.responses) > 0 {
			pipe := n.redis.client.Pipeline()
			sets := n.queueResponses(ctx, pipe, math.MaxInt)
			_, _ = pipe.Exec(ctx) // each command has its own error
			n.redis.countDropped(sets)
		}
	}
}

// queueResponses adds waiting responses to a pipeline, at most maxBatch, until they have that many bytes.
func (n *node) queueResponses(ctx context.Context, pipe redis.Pipeliner, bytes int) (sets []*redis.StatusCmd) {
	for len(sets) < maxBatch && bytes > 0 {
		select {
		case k := <-n.responses:
			if ttl := time.Until(k.until); ttl < time.Second || n.down.Load() {
				n.redis.dropped()
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
