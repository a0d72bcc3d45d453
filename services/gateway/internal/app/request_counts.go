package app

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

// RequestCounts counts all requests by tenant, mode, day and class for metering, and sends the counts to Kafka. While Kafka is
// unavailable it continues to count, so that an outage loses nothing. A count that may have arrived is sent again with the same id, and
// the consumer adds it once. With a file, this also holds for a process that is killed: the next one sends its counts.
type RequestCounts struct {
	counts   *store.Counts
	producer kafkax.Producer
	log      *slog.Logger
	metrics  *Metrics

	batch   []kafkax.Message // what is being sent; only Run uses these three
	held    int64            // its requests
	failing bool
}

const (
	maxInMessage = 2000        // numbers in one message, about 100 KiB
	countEvery   = time.Second // how long a number waits
	dayLength    = 24 * time.Hour
)

// NewRequestCounts returns a counter. Run sends its counts, and those that another process left in the file.
func NewRequestCounts(counts *store.Counts, producer kafkax.Producer, log *slog.Logger, m *Metrics) *RequestCounts {
	return &RequestCounts{counts: counts, producer: producer, log: log, metrics: m}
}

// Add counts a request of a class that arrived at a time.
func (r *RequestCounts) Add(from *caller.Caller, arrived time.Time, class string) {
	day := int32(arrived.Unix() / int64(dayLength/time.Second))
	if !r.counts.Add(domain.Counted{Tenant: from.Tenant, Live: from.Live(), Day: day, Class: class}) {
		r.metrics.RequestCounts.WithLabelValues("full").Inc()
	}
}

// Waiting returns the number of requests whose counts Kafka has not confirmed.
func (r *RequestCounts) Waiting() int64 { return r.counts.Requests() }

// Close closes the file.
func (r *RequestCounts) Close() error { return r.counts.Close() }

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
	switch left := r.Waiting(); {
	case left == 0:
	case r.counts.Durable():
		r.log.Warn("request counts kept for the next start: Kafka did not accept them before shutdown", slog.Int64("requests", left))
	default:
		r.metrics.RequestCounts.WithLabelValues("lost").Add(float64(left))
		r.log.Error("request counts lost: Kafka did not accept them before shutdown", slog.Int64("requests", left))
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
		r.counts.Release()
		r.metrics.RequestCounts.WithLabelValues("sent").Add(float64(r.held))
		r.batch, r.held = nil, 0
	}
	if down := err != nil; down != r.failing {
		r.failing = down
		if down {
			r.log.Warn("request counts not accepted by Kafka; trying again", slog.Any("error", err))
		} else {
			r.log.Info("request counts accepted by Kafka again")
		}
	}
}

// take freezes the counts and makes the batch of them. The messages of a tenant have one key, so that one process adds its counts. The
// same counts always make the same messages with the same ids.
func (r *RequestCounts) take() {
	id, list := r.counts.Frozen()
	var shards [requestLogShards][]*eventsv1.RequestCount
	for _, n := range list {
		tenant := n.Tenant.UUID()
		shard := &shards[tenant[len(tenant)-1]%requestLogShards]
		*shard = append(*shard, &eventsv1.RequestCount{TenantUuid: tenant[:], Livemode: n.Live, Day: n.Day, Class: n.Class, Requests: n.Requests})
		r.held += n.Requests
	}
	for i, shard := range shards {
		for part := range slices.Chunk(shard, maxInMessage) {
			if message, ok := r.message(messageID(id, len(r.batch)), i, part); ok {
				r.batch = append(r.batch, message)
			}
		}
	}
}

// messageID returns the id of a message, from that of its table.
func messageID(table [16]byte, i int) []byte {
	id := table[:]
	tail := id[len(id)-4:]
	binary.BigEndian.PutUint32(tail, binary.BigEndian.Uint32(tail)+uint32(i))
	return id
}

func (r *RequestCounts) message(id []byte, shard int, counts []*eventsv1.RequestCount) (kafkax.Message, bool) {
	body, err := proto.Marshal(&eventsv1.RequestLogs{Counts: []*eventsv1.RequestCounts{{Id: id, Counts: counts}}})
	if err != nil {
		r.log.Error("request counts not encoded", slog.Any("error", err))
		return kafkax.Message{}, false
	}
	return kafkax.Message{Topic: topic, Key: strconv.Itoa(shard), Value: body}, true
}
