package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// RequestCounts counts all requests by tenant, mode, day and class for metering, and sends the counts to Kafka. While Kafka is
// unavailable it continues to count, so that an outage loses nothing. A count that may have arrived is sent again with the same id, and
// the consumer adds it once. Only a process that is killed loses counts: those of its last second.
type RequestCounts struct {
	producer kafkax.Producer
	log      *slog.Logger
	metrics  *Metrics

	mu     sync.Mutex
	counts map[counted]int64 // guarded by mu: the requests since the last batch

	batch   []kafkax.Message // what is being sent; only Run uses these three
	held    int64            // its requests
	failing bool
}

// counted is what one number counts.
type counted struct {
	tenant ids.Tenant
	live   bool
	day    int32 // since 1970-01-01
	class  string
}

const (
	maxCounted   = 100_000     // numbers in memory; requests beyond that many are not counted
	maxInMessage = 2000        // numbers in one message, about 100 KiB
	countEvery   = time.Second // how long a number waits
	dayLength    = 24 * time.Hour
)

// NewRequestCounts returns a counter. Run sends its counts.
func NewRequestCounts(producer kafkax.Producer, log *slog.Logger, m *Metrics) *RequestCounts {
	return &RequestCounts{producer: producer, log: log, metrics: m, counts: map[counted]int64{}}
}

// Add counts a request of a class that arrived at a time.
func (r *RequestCounts) Add(from *caller.Caller, arrived time.Time, class string) {
	key := counted{from.Tenant, from.Live(), int32(arrived.Unix() / int64(dayLength/time.Second)), class} //nolint:gosec // fits until the year 5 million
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, known := r.counts[key]; known || len(r.counts) < maxCounted {
		r.counts[key] = n + 1
		return
	}
	r.metrics.RequestCounts.WithLabelValues("full").Inc()
}

// Run sends the counts until ctx ends, and then once more.
func (r *RequestCounts) Run(ctx context.Context) error {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.finish(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
			r.send(ctx, writeTimeout)
		}
	}
}

// finish sends what is left: the batch in flight, and then the last counts. Both have lastWriteTimeout.
func (r *RequestCounts) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWriteTimeout)
	defer cancel()
	for range 2 {
		r.send(ctx, lastWriteTimeout)
	}
	r.take()
	if r.held > 0 {
		r.metrics.RequestCounts.WithLabelValues("lost").Add(float64(r.held))
		r.log.Error("requests are not counted, because Kafka did not accept their counts before the stop", slog.Int64("requests", r.held))
	}
}

// send sends the batch, or a new one if the last one has arrived.
func (r *RequestCounts) send(ctx context.Context, timeout time.Duration) {
	if len(r.batch) == 0 {
		r.take()
	}
	if len(r.batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.producer.Produce(ctx, r.batch...)
	if err == nil {
		r.metrics.RequestCounts.WithLabelValues("sent").Add(float64(r.held))
		r.batch, r.held = nil, 0
	}
	if down := err != nil; down != r.failing {
		r.failing = down
		if down {
			r.log.Warn("counts of requests wait: Kafka does not accept them", slog.Any("error", err))
		} else {
			r.log.Info("counts of requests are sent again")
		}
	}
}

// take moves the counts to the batch. The messages of a tenant have one key, so that one process adds its counts.
func (r *RequestCounts) take() {
	r.mu.Lock()
	counts := r.counts
	r.counts = map[counted]int64{}
	r.mu.Unlock()
	var shards [requestLogShards][]*eventsv1.RequestCount
	for key, n := range counts {
		tenant := key.tenant.UUID()
		shard := &shards[tenant[len(tenant)-1]%requestLogShards]
		*shard = append(*shard, &eventsv1.RequestCount{TenantUuid: tenant[:], Livemode: key.live, Day: key.day, Class: key.class, Requests: n})
		r.held += n
	}
	for i, shard := range shards {
		for part := range slices.Chunk(shard, maxInMessage) {
			if message, ok := r.message(i, part); ok {
				r.batch = append(r.batch, message)
			}
		}
	}
}

func (r *RequestCounts) message(shard int, counts []*eventsv1.RequestCount) (kafkax.Message, bool) {
	id := make([]byte, len([16]byte{}))
	_, _ = rand.Read(id) // it never fails
	body, err := proto.Marshal(&eventsv1.RequestLogs{Counts: []*eventsv1.RequestCounts{{Id: id, Counts: counts}}})
	if err != nil {
		r.log.Error("counts of requests cannot be encoded", slog.Any("error", err))
		return kafkax.Message{}, false
	}
	return kafkax.Message{Topic: topic, Key: strconv.Itoa(shard), Value: body}, true
}
