package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pruneEvery is how often nodes that are no longer masters of the Cluster are forgotten.
const pruneEvery = time.Minute

// Redis runs the script and caches responses. Open creates one. Run sends what Evaluate and CacheResponse queue. In a Cluster, each
// master has its own batches and its own state, so that a silent master affects only the credentials of its slots.
type Redis struct {
	client  redis.UniversalClient
	script  *redis.Script
	queue   int
	dropped func()
	changed func(down bool)
	ready   chan struct{}   // closed when Run has tried to reach Redis
	running context.Context //nolint:containedctx // Run's; set before ready is closed
	unknown atomic.Int64    // nanoseconds since 1970 when Run failed to learn the masters of the Cluster; 0 when they are known

	mu    sync.RWMutex
	nodes map[string]*node // by address; "" if Redis is no Cluster
	add   func(address string, reach func(context.Context) error) *node

	downMu sync.Mutex
	down   int // number of nodes that are down, and one for a Cluster whose masters are unknown
}

// node is a master of a Cluster, or a whole Redis.
type node struct {
	redis       *Redis
	reach       func(context.Context) error // makes a round trip to the node
	evaluations chan *evaluation
	responses   chan cachedResponse
	waiting     chan struct{} // has room for one signal that a response was added
	stop        context.CancelFunc
	down        atomic.Bool
	since       atomic.Int64 // nanoseconds since 1970 when it went down; 0 while it is up
}

func newRedis(client redis.UniversalClient, opt Options) *Redis {
	return &Redis{
		client: client, script: redis.NewScript(windowScript), queue: opt.Queue, dropped: opt.Dropped, changed: opt.Changed,
		ready: make(chan struct{}), nodes: map[string]*node{},
	}
}

// Evaluate runs the script. Concurrent requests to a node share a pipeline. If the node does not respond, it returns ErrDown after one
// time-out, and then immediately until the node is up again. It waits for Run.
func (r *Redis) Evaluate(q Request) (Result, error) {
	e := &evaluation{request: q, done: make(chan struct{})}
	queued := false
	r.with(q.windowKey(), func(n *node) {
		if n.down.Load() {
			return
		}
		select {
		case n.evaluations <- e:
			queued = true
		default:
		}
	})
	if !queued {
		return Result{}, ErrDown
	}
	<-e.done
	return e.result, e.err
}

// CacheResponse caches value, the finished response of a holder's Idempotency-Key, until the given time. It never waits. While
// the node is down or the queue is full, the response is not cached, and its service replays it.
func (r *Redis) CacheResponse(h Holder, key string, value []byte, until time.Time) {
	if len(value) > maxCachedResponse {
		return
	}
	queued := false
	r.with(h.windowKey(), func(n *node) {
		select {
		case n.responses <- cachedResponse{key: h.responseKey(key), value: value, until: until}:
			queued = true
		default:
			return
		}
		select {
		case n.waiting <- struct{}{}:
		default:
		}
	})
	if !queued {
		r.dropped()
	}
}

// DownFor returns how long the holder's node has been down, or 0 while it is up.
func (r *Redis) DownFor(h Holder) time.Duration {
	since := r.unknown.Load()
	r.with(h.windowKey(), func(n *node) { since = n.since.Load() })
	if since == 0 {
		return 0
	}
	return time.Since(time.Unix(0, since))
}

// with calls use with the node of a key. The node is not stopped meanwhile. It does not call use if the node is unknown.
func (r *Redis) with(key string, use func(*node)) {
	<-r.ready
	address, reach := r.locate(key)
	if reach == nil {
		return
	}
	r.mu.RLock()
	n := r.nodes[address]
	if n != nil {
		use(n)
	}
	r.mu.RUnlock()
	if n == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n = r.nodes[address]; n == nil {
			n = r.add(address, reach)
		}
		use(n)
	}
}

// locate returns the address of a key's node, and a function that makes a round trip to it: nil if it is unknown.
func (r *Redis) locate(key string) (address string, reach func(context.Context) error) {
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		return "", func(ctx context.Context) error { return ping(ctx, r.client) }
	}
	if r.unknown.Load() > 0 {
		return "", nil
	}
	master, err := cluster.MasterForKey(r.running, key) // makes no round trip once they are known
	if err != nil {
		return "", nil
	}
	return master.Options().Addr, func(ctx context.Context) error {
		cluster.ReloadState(ctx) // another node may have the slots now
		return ping(ctx, master)
	}
}

// Run sends batches until ctx ends. Evaluate must not be called after that.
func (r *Redis) Run(ctx context.Context) error {
	r.running = ctx
	r.add = func(address string, reach func(context.Context) error) *node {
		n := &node{
			redis: r, reach: reach, evaluations: make(chan *evaluation, r.queue), responses: make(chan cachedResponse, r.queue),
			waiting: make(chan struct{}, 1),
		}
		var running context.Context
		running, n.stop = context.WithCancel(ctx)
		r.nodes[address] = n
		go n.run(running)
		return n
	}
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		r.single(ctx)
		<-ctx.Done()
		return nil
	}
	r.discover(ctx, cluster)
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.prune(ctx, cluster)
		case <-ctx.Done():
			return nil
		}
	}
}

// single adds the node of a Redis that is no Cluster.
func (r *Redis) single(ctx context.Context) {
	r.mu.Lock()
	n := r.add("", func(ctx context.Context) error { return ping(ctx, r.client) })
	r.mu.Unlock()
	if n.reach(ctx) != nil {
		n.markDown(ctx)
	}
	close(r.ready)
}

// discover learns the masters of a Cluster. Until it succeeds, all credentials are without a node.
func (r *Redis) discover(ctx context.Context, cluster *redis.ClusterClient) {
	for first := true; ; first = false {
		_, err := masters(ctx, cluster)
		switch {
		case err == nil && !first:
			r.unknown.Store(0)
			r.count(-1)
		case err != nil && first:
			r.unknown.Store(time.Now().UnixNano())
			r.count(1)
		}
		if first {
			close(r.ready)
		}
		if err == nil {
			return
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return
		}
	}
}

// prune stops the nodes that are no longer masters.
func (r *Redis) prune(ctx context.Context, cluster *redis.ClusterClient) {
	present, err := masters(ctx, cluster)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, n := range r.nodes {
		if !present[address] {
			delete(r.nodes, address)
			n.stop()
		}
	}
}

// masters returns the addresses of the masters.
func masters(ctx context.Context, cluster *redis.ClusterClient) (map[string]bool, error) {
	var mu sync.Mutex
	found := map[string]bool{}
	err := cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		found[master.Options().Addr] = true
		return nil
	})
	if err == nil && len(found) == 0 {
		err = errNoMaster
	}
	return found, err
}

var errNoMaster = errors.New("the cluster has no master")

func ping(ctx context.Context, client redis.UniversalClient) error {
	pipe := client.Pipeline()
	pipe.Ping(ctx)
	_, err := pipe.Exec(ctx)
	return err
}

// run sends the node's batches until ctx ends.
func (n *node) run(ctx context.Context) {
	go n.writeResponses(ctx)
	batch := make([]*evaluation, 0, maxBatch)
	for {
		select {
		case first := <-n.evaluations:
			batch = n.gather(append(batch[:0], first))
			n.flush(ctx, batch)
		case <-ctx.Done():
			n.refuse() // no more can come
			return
		}
	}
}

// refuse returns ErrDown for the evaluations that wait.
func (n *node) refuse() {
	for {
		select {
		case e := <-n.evaluations:
			e.err = ErrDown
			close(e.done)
		default:
			return
		}
	}
}

// markDown stops the node's evaluations until a background probe completes a round trip.
func (n *node) markDown(ctx context.Context) {
	if !n.down.CompareAndSwap(false, true) {
		return
	}
	n.since.Store(time.Now().UnixNano())
	n.redis.count(1)
	go func() {
		defer n.redis.count(-1)
		for {
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
				return
			}
			if n.reach(ctx) == nil {
				n.since.Store(0)
				n.down.Store(false)
				return
			}
		}
	}()
}

// count adds a node that went down, or removes one that is up again or no longer a master.
func (r *Redis) count(change int) {
	r.downMu.Lock()
	defer r.downMu.Unlock()
	before := r.down
	r.down += change
	if (before == 0) != (r.down == 0) {
		r.changed(r.down > 0)
	}
}
